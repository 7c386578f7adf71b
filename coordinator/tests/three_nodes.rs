//! Three nodes in one process: leader hints, a leader that dies, a follower that comes back from far behind.

mod support;

use std::net::SocketAddr;

use coord_common::JobId;
use coord_proto::detail::detail_of;
use coord_proto::v1;
use coord_proto::v1::job_service_client::JobServiceClient;
use coordinator::handle::CoordinatorHandle;
use coordinator::server::Server;
use coordinator_core::Command;
use support::{describe, settings, submit, within};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A node with a runtime of its own: dropping that ends it like a kill, with nothing said to anybody.
struct Member {
    handle: CoordinatorHandle,
    address: SocketAddr,
    _server: Server,
    runtime: Runtime,
}

struct Cluster {
    folder: TempDir,
    peers: String,
    members: Vec<Option<Member>>,
}

impl Cluster {
    fn start() -> Self {
        let listeners: Vec<std::net::TcpListener> =
            (0..3).map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("bind")).collect();
        let peers: Vec<String> = listeners
            .iter()
            .zip(1..)
            .map(|(listener, node)| format!("{node}={}", listener.local_addr().expect("address")))
            .collect();
        let mut cluster =
            Self { folder: TempDir::new().expect("folder"), peers: peers.join(","), members: vec![None, None, None] };
        for (index, listener) in listeners.into_iter().enumerate() {
            cluster.members[index] = Some(cluster.member(index, listener));
        }
        cluster
    }

    fn member(&self, index: usize, listener: std::net::TcpListener) -> Member {
        let settings = settings(&self.folder.path().join(format!("node{index}")), |flags| {
            flags.node_id = Some((index + 1).to_string());
            flags.peers = Some(self.peers.clone());
        });
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("runtime");
        let server = runtime.block_on(async {
            listener.set_nonblocking(true).expect("listener");
            let listener = tokio::net::TcpListener::from_std(listener).expect("listener");
            Server::start(&settings, listener).await.expect("start")
        });
        Member { handle: server.handle().clone(), address: server.address(), _server: server, runtime }
    }

    fn alive(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().flatten()
    }

    /// Waits until one of the members that are alive leads.
    async fn leader(&self) -> usize {
        let waits = self.members.iter().enumerate().filter_map(|(index, member)| {
            let mut views = member.as_ref()?.handle.views();
            Some(Box::pin(async move {
                views.wait_for(|view| view.raft.leads).await.expect("the node runs");
                index
            }))
        });
        let (index, _, _) = within("an election", futures::future::select_all(waits)).await;
        index
    }

    fn kill(&mut self, index: usize) {
        let Member { handle, _server, runtime, .. } = self.members[index].take().expect("alive");
        drop(runtime);
        drop(handle);
        drop(_server);
    }
}

#[test]
fn a_dead_leader_is_replaced_and_the_jobs_are_still_there() {
    let mut cluster = Cluster::start();
    let outside = Runtime::new().expect("runtime");
    let first = outside.block_on(cluster.leader());
    outside.block_on(async {
        let leader = cluster.members[first].as_ref().expect("alive");
        let mut client = JobServiceClient::connect(format!("http://{}", leader.address)).await.expect("connect");
        client.submit_job(submit("r1", "chat")).await.expect("submit");
    });
    cluster.kill(first);
    outside.block_on(async {
        let second = cluster.leader().await;
        assert_ne!(first, second);
        let leader = cluster.members[second].as_ref().expect("alive");
        let mut client = JobServiceClient::connect(format!("http://{}", leader.address)).await.expect("connect");
        assert_eq!(describe(&mut client, "chat").await.spec.expect("a spec").job, "chat");
        // Sent again because the first answer might have been lost: the same job.
        client.submit_job(submit("r1", "chat")).await.expect("submit");
        let listed = client.list_jobs(v1::ListJobsRequest::default()).await.expect("list").into_inner();
        assert_eq!(listed.jobs.len(), 1);
    });
}

#[test]
fn a_follower_refuses_with_the_address_of_the_leader() {
    let cluster = Cluster::start();
    let outside = Runtime::new().expect("runtime");
    outside.block_on(async {
        let leader = cluster.leader().await;
        let address = cluster.members[leader].as_ref().expect("alive").address.to_string();
        for (index, member) in cluster.members.iter().enumerate().filter(|(index, _)| *index != leader) {
            let member = member.as_ref().expect("alive");
            let mut views = member.handle.views();
            within("hearing of the leader", views.wait_for(|view| view.raft.leader != 0)).await.expect("runs");
            let mut client = JobServiceClient::connect(format!("http://{}", member.address)).await.expect("connect");
            let request = submit(&format!("r{index}"), "chat");
            let refused = client.submit_job(request).await.expect_err("a follower");
            assert_eq!(refused.code(), tonic::Code::Unavailable);
            let detail = detail_of(&refused).expect("a detail");
            assert_eq!((detail.code.as_str(), detail.leader), ("not_leader", address.clone()));
            assert!(detail.retryable);
        }
    });
    assert_eq!(cluster.alive().count(), 3);
}

#[test]
fn a_follower_that_comes_back_far_behind_receives_a_snapshot() {
    let mut cluster = Cluster::start();
    let outside = Runtime::new().expect("runtime");
    let leader = outside.block_on(cluster.leader());
    let late = (leader + 1) % 3;
    let address = cluster.members[late].as_ref().expect("alive").address;
    cluster.kill(late);
    let applied = outside.block_on(async {
        let handle = cluster.members[leader].as_ref().expect("alive").handle.clone();
        let mut client = {
            let address = cluster.members[leader].as_ref().expect("alive").address;
            JobServiceClient::connect(format!("http://{address}")).await.expect("connect")
        };
        client.submit_job(submit("r1", "chat")).await.expect("submit");
        // More than lies between two snapshots.
        for _ in 0..12 {
            let mut answers = Vec::new();
            for _ in 0..1_000 {
                answers.push(handle.enqueue(Command::ForgetJobs { jobs: Vec::new() }).await.expect("enqueue"));
            }
            for answer in answers {
                answer.await.expect("a quorum");
            }
        }
        handle.view().raft.applied
    });
    let listener = std::net::TcpListener::bind(address).expect("bind again");
    cluster.members[late] = Some(cluster.member(late, listener));
    let handle = cluster.members[late].as_ref().expect("alive").handle.clone();
    outside.block_on(async {
        let mut views = handle.views();
        within("catching up", views.wait_for(|view| view.raft.applied >= applied)).await.expect("the node runs");
    });
    let job = JobId::parse("chat").expect("valid");
    assert!(handle.peek(|state| state.job(&job).is_some()));
    let snapshots = cluster.folder.path().join(format!("node{late}/snapshots"));
    assert_eq!(std::fs::read_dir(snapshots).expect("list").count(), 1, "it came by a snapshot");
}

#[test]
fn a_leader_that_stops_hands_over_at_once() {
    let mut cluster = Cluster::start();
    let outside = Runtime::new().expect("runtime");
    let first = outside.block_on(cluster.leader());
    let Member { _server: server, runtime, .. } = cluster.members[first].take().expect("alive");
    let handle = server.handle().clone();
    runtime.block_on(server.stop());
    assert!(!handle.leads(), "the lead was gone before the node stopped");
    let second = outside.block_on(cluster.leader());
    assert_ne!(first, second);
}
