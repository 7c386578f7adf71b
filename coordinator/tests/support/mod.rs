//! Nodes in this process and an agent that does what the test says.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::Path;
use std::time::Duration;

use coord_proto::v1;
use coord_proto::v1::agent_message::Message as Said;
use coord_proto::v1::fact::Fact as Body;
use coord_proto::v1::job_service_client::JobServiceClient;
use coord_proto::v1::leader_message::Message as Told;
use coord_proto::v1::worker_service_client::WorkerServiceClient;
use coordinator::server::Server;
use coordinator::{ServeFlags, ServeSettings};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

const PATIENCE: Duration = Duration::from_secs(20);

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} took more than 20 s"))
}

pub fn settings(data_dir: &Path, change: impl FnOnce(&mut ServeFlags)) -> ServeSettings {
    let mut flags = ServeFlags {
        data_dir: Some(data_dir.display().to_string()),
        http: Some("127.0.0.1:0".to_owned()),
        ..ServeFlags::default()
    };
    change(&mut flags);
    ServeSettings::resolve(flags, |_| None).expect("valid settings")
}

/// A node on a port that the system chooses, leading.
pub async fn lone_node(data_dir: &Path) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let server = Server::start(&settings(data_dir, |_| ()), listener).await.expect("start");
    let mut views = server.handle().views();
    within("leading", views.wait_for(|view| view.raft.leads)).await.expect("the node runs");
    server
}

pub async fn jobs(server: &Server) -> JobServiceClient<Channel> {
    JobServiceClient::connect(format!("http://{}", server.address())).await.expect("connect")
}

pub fn spec(job: &str, workers: u32) -> v1::JobSpec {
    v1::JobSpec {
        job: job.to_owned(),
        trainer: "translate".to_owned(),
        workers_min: workers,
        workers_max: workers,
        slots_per_worker: 1,
        device: v1::Device::Cpu.into(),
        micro_batches: 8,
        ..v1::JobSpec::default()
    }
}

pub fn submit(request_id: &str, job: &str) -> v1::SubmitJobRequest {
    v1::SubmitJobRequest { request_id: request_id.to_owned(), spec: Some(spec(job, 1)) }
}

pub async fn describe(client: &mut JobServiceClient<Channel>, job: &str) -> v1::Job {
    let request = v1::DescribeJobRequest { job: job.to_owned() };
    client.describe_job(request).await.expect("describe").into_inner().job.expect("a job")
}

/// Follows the job by long polls until it is in this phase.
pub async fn wait_for_phase(client: &mut JobServiceClient<Channel>, job: &str, phase: v1::Phase) -> v1::Job {
    let mut version = 0;
    within(phase.as_str_name(), async {
        loop {
            let request = v1::WatchJobRequest { job: job.to_owned(), version };
            let response = client.watch_job(request).await.expect("watch").into_inner();
            let seen = response.job.expect("a job");
            if seen.phase() == phase {
                return seen;
            }
            version = response.version;
        }
    })
    .await
}

pub struct Agent {
    pub worker: String,
    said: mpsc::Sender<v1::AgentMessage>,
    told: Streaming<v1::LeaderMessage>,
    sequence: u64,
}

impl Agent {
    pub async fn attach(address: std::net::SocketAddr, worker: &str, slots: u32) -> Self {
        let mut client = WorkerServiceClient::connect(format!("http://{address}")).await.expect("connect");
        let (said, messages) = mpsc::channel(64);
        let told = client.attach(ReceiverStream::new(messages)).await.expect("attach").into_inner();
        let mut agent = Self { worker: worker.to_owned(), said, told, sequence: 0 };
        agent
            .say(Said::Register(v1::Register {
                worker: worker.to_owned(),
                name: format!("{worker}:/work"),
                incarnation: format!("{worker}-1"),
                slots,
                device: v1::Device::Cpu.into(),
                numeric_class: "class".to_owned(),
                version: "0.1.0".to_owned(),
                host: "127.0.0.1".to_owned(),
                ..v1::Register::default()
            }))
            .await;
        let registered = agent.next().await;
        assert!(matches!(registered, Told::Registered(_)), "got {registered:?}");
        agent
    }

    pub async fn say(&self, message: Said) {
        self.said.send(v1::AgentMessage { message: Some(message) }).await.expect("the stream is open");
    }

    /// The next message that is no heartbeat.
    pub async fn next(&mut self) -> Told {
        within("a message of the leader", async {
            loop {
                let message = self.told.message().await.expect("no error").expect("the stream is open");
                match message.message.expect("content") {
                    Told::Heartbeat(_) => {}
                    other => return other,
                }
            }
        })
        .await
    }

    pub async fn expect_launch(&mut self) -> v1::Launch {
        match self.next().await {
            Told::Launch(launch) => launch,
            other => panic!("expected a launch, got {other:?}"),
        }
    }

    /// Waits for the order to meet; launches may be repeated before it.
    pub async fn expect_rendezvous(&mut self) -> v1::Rendezvous {
        loop {
            match self.next().await {
                Told::Rendezvous(rendezvous) => return rendezvous,
                Told::Launch(_) | Told::Acknowledge(_) => {}
                other => panic!("expected a rendezvous, got {other:?}"),
            }
        }
    }

    /// Plays the next launch of a lone replica up to its first step.
    pub async fn run_next(&mut self) -> v1::ReplicaKey {
        let key = self.expect_launch().await.key.expect("a key");
        self.ready(&key).await;
        self.expect_rendezvous().await;
        self.running(&key).await;
        key
    }

    /// Reports a fact; its acknowledgement comes with the other messages.
    pub async fn fact(&mut self, key: &v1::ReplicaKey, body: Body) {
        self.sequence += 1;
        let fact = v1::Fact { sequence: self.sequence, key: Some(key.clone()), fact: Some(body) };
        self.say(Said::Fact(fact)).await;
    }

    pub async fn ready(&mut self, key: &v1::ReplicaKey) {
        self.fact(key, Body::Ready(v1::ReplicaReady { endpoint: "127.0.0.1:9000".to_owned() })).await;
    }

    pub async fn running(&mut self, key: &v1::ReplicaKey) {
        self.fact(key, Body::Running(v1::ReplicaRunning { step: 1, ..v1::ReplicaRunning::default() })).await;
    }

    pub async fn exited(&mut self, key: &v1::ReplicaKey, cause: &str, code: i32) {
        let exited = v1::ReplicaExited { code: Some(code), cause: cause.to_owned(), ..v1::ReplicaExited::default() };
        self.fact(key, Body::Exited(exited)).await;
    }

    /// Answers the next question for a log.
    pub async fn answer_log(&mut self, stored: &[u8], ended: bool) {
        loop {
            if let Told::ReadLog(question) = self.next().await {
                let data = stored[question.position as usize..].to_vec().into();
                self.say(Said::Log(v1::LogData { request: question.request, data, known: true, ended })).await;
                return;
            }
        }
    }
}
