//! Three real processes, one of which has lost its data directory: refused, then filled again by `--rejoin`.

mod support;

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use coord_proto::v1;
use coord_proto::v1::cluster_service_client::ClusterServiceClient;
use coord_proto::v1::job_service_client::JobServiceClient;
use support::submit;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(30);

struct Cluster {
    folder: TempDir,
    addresses: Vec<SocketAddr>,
    nodes: Vec<Option<Child>>,
    outside: Runtime,
}

struct Fallen {
    leader: usize,
    lost: usize,
    applied: u64,
}

impl Cluster {
    fn new() -> Self {
        let listeners: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("bind")).collect();
        let addresses = listeners.iter().map(|listener| listener.local_addr().expect("address")).collect();
        let folder = TempDir::new().expect("folder");
        Self { folder, addresses, nodes: vec![None, None, None], outside: Runtime::new().expect("runtime") }
    }

    /// Three nodes with a job, of which a follower that has it all is killed.
    fn lose_a_follower(&mut self) -> Fallen {
        for node in 0..3 {
            self.start(node, &[]);
        }
        self.submit("before");
        let leader = self.leader();
        let lost = (leader + 1) % 3;
        let applied = self.members(leader).expect("it answers").applied;
        self.until_applied(lost, applied);
        self.kill(lost);
        Fallen { leader, lost, applied }
    }

    fn data_dir(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("node{node}"))
    }

    fn start(&mut self, node: usize, more: &[&str]) {
        let peers: Vec<String> =
            (1..).zip(&self.addresses).map(|(number, address)| format!("{number}={address}")).collect();
        let child = Command::new(env!("CARGO_BIN_EXE_coord"))
            .args(["serve", "--http", "off", "--listen", &self.addresses[node].to_string()])
            .args(["--node-id", &(node + 1).to_string(), "--peers", &peers.join(",")])
            .arg("--data-dir")
            .arg(self.data_dir(node))
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .expect("start coord");
        self.nodes[node] = Some(child);
    }

    fn kill(&mut self, node: usize) {
        let mut child = self.nodes[node].take().expect("it runs");
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    /// Waits for the end of a node; its exit status and what it said.
    fn end(&mut self, node: usize) -> (Option<i32>, String) {
        let mut child = self.nodes[node].take().expect("it was started");
        let status = until("the end of the node", || child.try_wait().expect("wait"));
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (status.code(), said)
    }

    fn members(&self, node: usize) -> Option<v1::ListMembersResponse> {
        let url = format!("http://{}", self.addresses[node]);
        self.outside.block_on(async {
            let mut client = ClusterServiceClient::connect(url).await.ok()?;
            Some(client.list_members(v1::ListMembersRequest::default()).await.ok()?.into_inner())
        })
    }

    /// Waits until a node that runs leads.
    fn leader(&self) -> usize {
        until("a leader", || {
            (0..3).find(|node| {
                self.nodes[*node].is_some()
                    && self.members(*node).is_some_and(|answer| answer.leader == answer.node && answer.node > 0)
            })
        })
    }

    fn submit(&self, job: &str) {
        let url = format!("http://{}", self.addresses[self.leader()]);
        self.outside.block_on(async {
            let mut client = JobServiceClient::connect(url).await.expect("connect");
            client.submit_job(submit(job, job)).await.expect("submit");
        });
    }

    fn until_applied(&self, node: usize, index: u64) {
        until("the entries", || self.members(node).filter(|answer| answer.applied >= index));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// RFT-02.
#[test]
fn a_member_with_an_emptied_directory_is_refused_and_comes_back_by_rejoin() {
    let mut cluster = Cluster::new();
    let Fallen { leader, lost, .. } = cluster.lose_a_follower();
    std::fs::remove_dir_all(cluster.data_dir(lost)).expect("remove");

    for _ in 0..2 {
        cluster.start(lost, &[]);
        let (status, said) = cluster.end(lost);
        assert_eq!(status, Some(2), "{said}");
        for part in ["knows this node by another data directory", "hint: ", "--rejoin"] {
            assert!(said.contains(part), "`{part}` is missing in\n{said}");
        }
        assert!(!said.contains("panicked"), "{said}");
    }

    cluster.submit("between");
    let identity = cluster.data_dir(lost).join("node.json");
    std::fs::remove_dir_all(cluster.data_dir(lost)).expect("remove");
    cluster.start(lost, &["--rejoin"]);
    until("all entries and a vote", || {
        std::fs::read_to_string(&identity).ok().filter(|text| text.contains("\"stage\": \"used\""))
    });

    // It counts again: with the old leader gone, it is one of two.
    cluster.kill(leader);
    cluster.submit("after");
    cluster.kill(lost);
    cluster.start(lost, &[]);
    cluster.submit("at_last");
}

#[test]
fn two_emptied_members_do_not_begin_a_cluster_beside_the_one_that_remembers() {
    let mut cluster = Cluster::new();
    let Fallen { lost, applied, .. } = cluster.lose_a_follower();
    let emptied = [lost, cluster.leader()];
    let left = 3 - emptied[0] - emptied[1];
    cluster.until_applied(left, applied);
    cluster.kill(emptied[1]);
    cluster.kill(left);
    for node in emptied {
        std::fs::remove_dir_all(cluster.data_dir(node)).expect("remove");
        cluster.start(node, &[]);
    }
    // Each of them waits for the third, which knows them both.
    cluster.start(left, &[]);
    for node in emptied {
        let (status, said) = cluster.end(node);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("knows this node by another data directory"), "{said}");
        assert!(!said.contains("leads the cluster"), "{said}");
    }
}

#[test]
fn an_old_directory_that_returns_after_its_replacement_is_refused() {
    let mut cluster = Cluster::new();
    let Fallen { lost, applied, .. } = cluster.lose_a_follower();
    let old = cluster.folder.path().join("old");
    std::fs::rename(cluster.data_dir(lost), &old).expect("move");
    cluster.start(lost, &["--rejoin"]);
    cluster.until_applied(lost, applied);
    cluster.kill(lost);
    std::fs::rename(cluster.data_dir(lost), cluster.folder.path().join("new")).expect("move");
    std::fs::rename(&old, cluster.data_dir(lost)).expect("move");
    cluster.start(lost, &[]);
    let (status, said) = cluster.end(lost);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("knows this node by another data directory"), "{said}");
}
