//! A running node: data directory, Raft, services, HTTP; put together here and nowhere else.

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use coord_io::shutdown::{Shutdown, Signal};
use coord_proto::peer::v1::raft_service_server::RaftServiceServer;
use coord_proto::v1::cluster_service_server::ClusterServiceServer;
use coord_proto::v1::job_service_server::JobServiceServer;
use coord_proto::v1::worker_service_server::WorkerServiceServer;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;

use crate::clock::Clock;
use crate::handle::CoordinatorHandle;
use crate::leader::Leader;
use crate::metrics;
use crate::node::{self, NodeError};
use crate::raft::log::LogError;
use crate::raft::transport::MESSAGE_LIMIT as PEER_MESSAGE_LIMIT;
use crate::rpc::cluster_service::Cluster;
use crate::rpc::job_service::Jobs;
use crate::rpc::raft_service::Peers;
use crate::rpc::worker_service::Workers;
use crate::settings::ServeSettings;

/// Largest message of clients and agents, both ways.
const MESSAGE_LIMIT: usize = 4 << 20;
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// For another node to take the lead.
const HAND_OVER: Duration = Duration::from_millis(1_500);
/// For calls under way to end.
const DRAIN: Duration = Duration::from_secs(2);

pub struct Server {
    handle: CoordinatorHandle,
    leader: Leader,
    address: SocketAddr,
    http: Option<SocketAddr>,
    data_dir: PathBuf,
    ended: oneshot::Receiver<Option<NodeError>>,
    stop_serving: oneshot::Sender<()>,
    stop_http: watch::Sender<Option<Signal>>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
    _lock: File,
}

impl Server {
    /// Starts everything; answers when calls are taken. `listener` is where the gRPC services listen.
    pub async fn start(settings: &ServeSettings, listener: TcpListener) -> anyhow::Result<Self> {
        let lock = lock(&settings.data_dir)?;
        let (effects, following) = Leader::effects_channel();
        let runtime = Handle::current();
        let clock = Clock::start();
        let (handle, ended) =
            node::start(&settings.data_dir, settings.members.clone(), settings.rejoin, &runtime, clock, effects)
                .map_err(|error| with_hint(error.hint(&settings.data_dir, settings.members.are_alone()), error))?;
        let leader = Leader::start(handle.clone(), settings.policy, clock, following);

        let registry = metrics::registry(&leader)?;
        let readiness = metrics::readiness(handle.clone());
        let routes = coord_io::http::routes(registry, readiness);
        let (stop_http, http_stops) = Shutdown::manual();
        let http = match settings.http {
            None => None,
            Some(address) => {
                let bound = coord_io::http::serve(address, routes, http_stops).await;
                Some(bound.with_context(|| format!("listen on {address} (http)"))?)
            }
        };

        let address = listener.local_addr().context("read the address that the node listens on")?;
        let (stop_serving, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(handle.clone(), leader.clone(), settings.storage.clone(), listener, stopped));
        let data_dir = settings.data_dir.clone();
        Ok(Self { handle, leader, address, http, data_dir, ended, stop_serving, stop_http, serving, _lock: lock })
    }

    pub fn handle(&self) -> &CoordinatorHandle {
        &self.handle
    }

    pub fn leader(&self) -> &Leader {
        &self.leader
    }

    /// Where the gRPC services listen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where metrics and health are, unless that is switched off.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Runs until a signal, or until the node cannot go on. Within 5 s of the signal everything has ended.
    pub async fn run(mut self, mut shutdown: Shutdown) -> anyhow::Result<()> {
        tokio::select! {
            signal = shutdown.requested() => tracing::info!(?signal, "stopping"),
            end = &mut self.ended => {
                let error = end.ok().flatten();
                return match error {
                    Some(error) => {
                        let hint = error.hint(&self.data_dir, self.handle.members().are_alone());
                        Err(with_hint(hint, error))
                    }
                    None => Err(anyhow::anyhow!("the raft thread panicked; its message is above")),
                };
            }
        }
        self.stop().await;
        Ok(())
    }

    /// Hands the lead over, ends the streams, closes the log.
    pub async fn stop(self) {
        if self.handle.members().peers().next().is_some() {
            self.handle.give_up_lead().await;
            let mut views = self.handle.views();
            let _ = tokio::time::timeout(HAND_OVER, views.wait_for(|view| !view.raft.leads)).await;
        }
        self.handle.stop().await;
        let _ = self.ended.await;
        // The views have ended with the node, and with them every stream.
        let _ = self.stop_serving.send(());
        let _ = self.stop_http.send(Some(Signal::Terminate));
        if tokio::time::timeout(DRAIN, self.serving).await.is_err() {
            tracing::info!("some calls did not end in time");
        }
    }
}

async fn serve(
    handle: CoordinatorHandle,
    leader: Leader,
    storage: String,
    listener: TcpListener,
    stopped: oneshot::Receiver<()>,
) -> Result<(), tonic::transport::Error> {
    macro_rules! limited {
        ($server:expr, $limit:expr) => {
            $server.max_decoding_message_size($limit).max_encoding_message_size($limit)
        };
    }
    let jobs = JobServiceServer::new(Jobs { handle: handle.clone(), leader: leader.clone(), storage });
    let workers = WorkerServiceServer::new(Workers { leader: leader.clone() });
    let cluster = ClusterServiceServer::new(Cluster { handle: handle.clone(), leader });
    let peers = RaftServiceServer::new(Peers { handle });
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .add_service(limited!(jobs, MESSAGE_LIMIT))
        .add_service(limited!(workers, MESSAGE_LIMIT))
        .add_service(limited!(cluster, MESSAGE_LIMIT))
        .add_service(limited!(peers, PEER_MESSAGE_LIMIT))
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), async {
            let _ = stopped.await;
        })
        .await
}

/// One process per data directory.
fn lock(data_dir: &Path) -> anyhow::Result<File> {
    std::fs::create_dir_all(data_dir).with_context(|| format!("create data directory {}", data_dir.display()))?;
    let path = data_dir.join("LOCK");
    let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let error = LogError::Locked { folder: data_dir.to_owned() };
            Err(with_hint(error.hint(false), error))
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("lock {}", path.display())),
    }
}

fn with_hint(hint: Option<String>, error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    match hint {
        None => anyhow::Error::new(error),
        Some(hint) => anyhow::anyhow!("{error}\nhint: {hint}"),
    }
}

/// What `coord serve` does: runs a node until SIGTERM or SIGINT.
pub async fn serve_until_signal(settings: ServeSettings) -> anyhow::Result<()> {
    if settings.print_config {
        print!("{}", settings.printed());
        return Ok(());
    }
    coord_io::telemetry::init("info");
    let shutdown = Shutdown::install().context("install signal handlers")?;
    if settings.insecure {
        tracing::warn!(listen = %settings.listen, "anybody who reaches this address can run programs on the workers");
    }
    let listener =
        TcpListener::bind(settings.listen).await.with_context(|| format!("listen on {}", settings.listen))?;
    let server = Server::start(&settings, listener).await?;
    tracing::info!(
        node = settings.members.node,
        grpc = %server.address(),
        http = server.http_address().map_or("off".to_owned(), |address| address.to_string()),
        data_dir = %settings.data_dir.display(),
        storage = settings.storage,
        "coordinator is up"
    );
    server.run(shutdown).await
}
