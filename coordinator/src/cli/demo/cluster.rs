//! The embedded cluster: one coordinator and two workers, as child processes on free ports.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use coord_proto::v1;

use super::super::address::Address;
use super::super::client::Client;
use super::super::exit::Problem;
use super::place::Place;
use super::processes::Process;

const START_LIMIT: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
pub const WORKERS: usize = 2;

pub struct Cluster {
    pub address: Address,
    coordinator: Process,
    /// In order of their numbers, from 1. Nothing in place of one that was killed.
    workers: Vec<Option<Process>>,
}

impl Cluster {
    pub fn start(place: &Place, worker: &Path) -> Result<Self, Problem> {
        let port = free_port()?;
        let listen = format!("127.0.0.1:{port}");
        let address = Address::parse(&listen).expect("an IP address and a port");
        let own = std::env::current_exe()?;
        let mut arguments = words(&["serve", "--listen", &listen]);
        arguments.extend(words(&["--http", &format!("127.0.0.1:{}", free_port()?)]));
        arguments.extend(["--data-dir".into(), place.coordinator().into()]);
        arguments.extend(words(&["--storage", &place.storage_url()]));
        let coordinator = Process::start("coordinator", &own, arguments, &place.logs())?;
        let mut workers = Vec::new();
        for number in 1..=WORKERS {
            let mut arguments = words(&["run", "--coordinator", &listen, "--slots", "1"]);
            arguments.extend(words(&["--http", &format!("127.0.0.1:{}", free_port()?)]));
            arguments.extend(["--work-dir".into(), place.worker(number).into()]);
            workers.push(Some(Process::start(&format!("worker-{number}"), worker, arguments, &place.logs())?));
        }
        Ok(Self { address, coordinator, workers })
    }

    /// Waits until all workers have registered.
    pub async fn ready(&mut self, client: &mut Client) -> Result<(), Problem> {
        let registered = async {
            loop {
                self.check_alive()?;
                let connected = |worker: &v1::Worker| worker.state == "connected";
                // Not an error yet: the coordinator may still be starting, and `check_alive` sees it end.
                match client.workers().await {
                    Ok(workers) if workers.iter().filter(|worker| connected(worker)).count() == WORKERS => {
                        return Ok(());
                    }
                    Ok(_) | Err(_) => tokio::time::sleep(LOOK_INTERVAL).await,
                }
            }
        };
        let in_time = tokio::time::timeout(START_LIMIT, registered).await;
        in_time.unwrap_or_else(|_| {
            let seconds = START_LIMIT.as_secs();
            Err(Problem::failed(format!("the {WORKERS} workers have not registered within {seconds} s")))
        })
    }

    pub fn check_alive(&mut self) -> Result<(), Problem> {
        self.coordinator.check_alive()?;
        self.workers.iter_mut().flatten().try_for_each(Process::check_alive)
    }

    /// Kills the worker that holds a replica, both at once. Gives the worker's name and process.
    pub fn kill_worker_of(&mut self, replica: &v1::Replica, place: &Place) -> Option<(String, u32)> {
        let holds = |number: usize| {
            let folder = place.worker(number);
            replica.worker_name.contains(folder.to_str().unwrap_or_default())
        };
        // A worker's name holds its work directory; should it not, any of them shows the same.
        let number = (1..=WORKERS).find(|&number| holds(number)).unwrap_or(WORKERS);
        let mut victim = self.workers.get_mut(number - 1)?.take()?;
        let id = victim.id()?;
        victim.kill_tree();
        Some((victim.name.clone(), id))
    }

    /// Workers first, so that they hand over their last lines.
    pub async fn end(self) {
        let Self { coordinator, workers, .. } = self;
        futures::future::join_all(workers.into_iter().flatten().map(Process::end)).await;
        coordinator.end().await;
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, Problem> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
