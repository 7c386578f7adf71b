//! A cluster in a temporary directory: its nodes and agents, their deaths and their returns.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::client::{Ended, Followed};
use super::data::Dialogues;
use super::ports::Port;
use super::process::{Process, clean_command};
use super::tools::binary;
use super::waiting::until;

/// Lines of each log that are printed when a test fails.
const LINES_SHOWN: usize = 60;

/// What a cluster consists of.
#[derive(Debug, Clone)]
pub struct Layout {
    pub coordinators: usize,
    /// Slots of each worker.
    pub workers: Vec<u32>,
    /// Nothing for a directory of the cluster's own.
    pub storage: Option<String>,
    /// Of coordinators, agents and commands.
    pub environment: Vec<(String, String)>,
    /// A lost worker is noticed by its silence after this time.
    pub lease_seconds: u32,
    /// A replica that says nothing is ended by its agent after this time.
    pub replica_silence_seconds: u32,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            coordinators: 1,
            workers: vec![1, 1],
            storage: None,
            environment: Vec::new(),
            lease_seconds: 4,
            replica_silence_seconds: 60,
        }
    }
}

impl Layout {
    pub fn workers(slots: &[u32]) -> Self {
        Self { workers: slots.to_vec(), ..Self::default() }
    }
}

/// A place of a coordinator or worker; the process in it comes and goes.
#[derive(Debug)]
struct Seat {
    name: String,
    rpc: Option<Port>,
    http: Port,
    slots: u32,
    process: Option<Process>,
}

#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    layout: Layout,
    coordinators: Vec<Seat>,
    workers: Vec<Seat>,
}

impl Cluster {
    /// Starts everything; returns when all workers are connected.
    pub fn start(layout: Layout) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let seat = |name: String, rpc, slots| Seat { name, rpc, http: Port::reserve(), slots, process: None };
        let numbers = 1..=layout.coordinators;
        let coordinators = numbers.map(|number| seat(format!("coordinator-{number}"), Some(Port::reserve()), 0));
        let coordinators = coordinators.collect();
        let slots = (1..).zip(&layout.workers);
        let workers = slots.map(|(number, &slots)| seat(format!("worker-{number}"), None, slots)).collect();
        let mut cluster = Self { folder, coordinators, workers, layout };
        for node in 0..cluster.coordinators.len() {
            cluster.start_coordinator(node);
        }
        for worker in 0..cluster.workers.len() {
            cluster.start_worker(worker);
        }
        cluster.until_connected(cluster.workers.len());
        cluster
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn dialogues(&self) -> Dialogues {
        Dialogues::make(&self.folder().join("dialogues"))
    }

    /// URL of the storage.
    pub fn storage(&self) -> String {
        let own = || format!("file://{}/storage", self.folder().display());
        self.layout.storage.clone().unwrap_or_else(own)
    }

    /// Addresses of all coordinators.
    pub fn address(&self) -> String {
        let addresses = self.coordinators.iter().filter_map(|seat| seat.rpc.as_ref()).map(Port::address);
        addresses.collect::<Vec<_>>().join(",")
    }

    pub fn coordinator_http(&self, node: usize) -> String {
        self.coordinators[node].http.address()
    }

    pub fn worker_http(&self, worker: usize) -> String {
        self.workers[worker].http.address()
    }

    pub fn coordinator(&mut self, node: usize) -> &mut Process {
        running(&mut self.coordinators[node])
    }

    pub fn worker(&mut self, worker: usize) -> &mut Process {
        running(&mut self.workers[worker])
    }

    fn command(&self, program: &str) -> Command {
        let mut command = clean_command(binary(program));
        command.envs(self.layout.environment.iter().cloned()).current_dir(self.folder());
        command
    }

    /// Starts the process of a coordinator whose last one is gone.
    pub fn start_coordinator(&mut self, node: usize) {
        let seat = &self.coordinators[node];
        let listen = |seat: &Seat| seat.rpc.as_ref().map(Port::address).unwrap_or_default();
        let mut command = self.command("coord");
        command.args(["serve", "--listen", &listen(seat), "--http", &seat.http.address()]);
        command.arg("--data-dir").arg(self.folder().join(&seat.name)).args(["--storage", &self.storage()]);
        command.args(["--lease", &self.layout.lease_seconds.to_string()]);
        if self.coordinators.len() > 1 {
            let peers = (1..).zip(&self.coordinators).map(|(number, seat)| format!("{number}={}", listen(seat)));
            let peers = peers.collect::<Vec<_>>().join(",");
            command.args(["--node-id", &(node + 1).to_string(), "--peers", &peers]);
        }
        let process = Process::start(&seat.name, &mut command, self.folder());
        self.coordinators[node].process = Some(process);
    }

    /// Starts the agent of a worker whose last one is gone.
    pub fn start_worker(&mut self, worker: usize) {
        let seat = &self.workers[worker];
        let mut command = self.command("coord-worker");
        command.args(["run", "--coordinator", &self.address(), "--http", &seat.http.address()]);
        command.args(["--slots", &seat.slots.to_string()]);
        command.args(["--replica-silence", &self.layout.replica_silence_seconds.to_string()]);
        command.arg("--work-dir").arg(self.folder().join(&seat.name));
        let process = Process::start(&seat.name, &mut command, self.folder());
        self.workers[worker].process = Some(process);
    }

    /// Waits until this many workers are connected to the leader.
    pub fn until_connected(&mut self, wanted: usize) {
        until(&format!("{wanted} connected workers"), || {
            let seats = self.coordinators.iter_mut().chain(&mut self.workers);
            seats.filter_map(|seat| seat.process.as_mut()).for_each(Process::assert_alive);
            let ended = self.coord(&["workers", "--output", "json"]);
            let workers: Value = serde_json::from_str(&ended.stdout).map_err(|_| ended.to_string())?;
            let connected = workers.as_array().into_iter().flatten().filter(|worker| worker["state"] == "connected");
            match connected.count() {
                count if count == wanted => Ok(()),
                _ => Err(workers.to_string()),
            }
        });
    }

    /// SIGKILL for a coordinator.
    pub fn kill_coordinator(&mut self, node: usize) {
        self.coordinators[node].process.take().expect("the coordinator runs").kill_tree();
    }

    /// SIGKILL for an agent and all its replicas at the same moment.
    pub fn kill_worker(&mut self, worker: usize) {
        self.workers[worker].process.take().expect("the agent runs").kill_tree();
    }

    /// SIGTERM for an agent; returns when it has left.
    pub fn stop_worker(&mut self, worker: usize) {
        let status = self.workers[worker].process.take().expect("the agent runs").terminate();
        assert!(status.success(), "an agent that is asked to leave ends with {status}");
    }

    /// SIGKILL for every process.
    pub fn kill_everything(&mut self) {
        for seat in self.coordinators.iter_mut().chain(&mut self.workers) {
            if let Some(mut process) = seat.process.take() {
                process.kill_tree();
            }
        }
    }

    /// Number of the coordinator that leads, from 0.
    pub fn leader(&self) -> usize {
        until("a leader", || {
            let ended = self.coord(&["members", "--output", "json"]);
            let members: Value = serde_json::from_str(&ended.stdout).map_err(|_| ended.to_string())?;
            let leader = members["leader"].as_u64().ok_or_else(|| members.to_string())?;
            usize::try_from(leader - 1).map_err(|_| members.to_string())
        })
    }

    /// Number of the worker that holds a replica of a job, from 0.
    pub fn worker_of(&self, job: &str, rank: usize) -> usize {
        let described = self.describe(job);
        let name = described["replicas"][rank]["worker_name"].as_str().unwrap_or_default().to_owned();
        // An agent is called by its host and the last part of its work directory.
        let found = self.workers.iter().position(|seat| name.rsplit('/').next() == Some(&seat.name));
        found.unwrap_or_else(|| panic!("rank {rank} is on no worker of this cluster: {described:#}"))
    }

    /// Runs a `coord` command to its end.
    pub fn coord<A: AsRef<str>>(&self, arguments: &[A]) -> Ended {
        self.follow(arguments).end()
    }

    /// Starts a `coord` command and lets it run.
    pub fn follow<A: AsRef<str>>(&self, arguments: &[A]) -> Followed {
        self.follow_with(arguments, &[])
    }

    /// The same with further environment variables.
    pub fn follow_with<A: AsRef<str>>(&self, arguments: &[A], environment: &[(String, String)]) -> Followed {
        let mut command = self.command("coord");
        command.env("COORD_ADDRESS", self.address()).envs(environment.iter().cloned());
        command.args(arguments.iter().map(AsRef::as_ref));
        Followed::start(command)
    }

    /// `coord submit JOB --trainer translate FLAGS -- PROGRAM_FLAGS`, which must be accepted.
    #[track_caller]
    pub fn submit(&self, job: &str, flags: &[&str], program: &[String]) {
        self.try_submit(job, flags, program).done();
    }

    pub fn try_submit(&self, job: &str, flags: &[&str], program: &[String]) -> Ended {
        let mut arguments = vec!["submit", job, "--trainer", "translate"];
        arguments.extend(flags);
        arguments.push("--");
        arguments.extend(program.iter().map(String::as_str));
        self.coord(&arguments)
    }

    #[track_caller]
    pub fn describe(&self, job: &str) -> Value {
        self.coord(&["describe", job, "--output", "json"]).json()
    }

    /// Looks at a job until a condition holds; gives what was seen then. A job that fails ends the wait.
    pub fn until(&self, job: &str, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        until(&format!("job {job}: {what}"), || {
            let ended = self.coord(&["describe", job, "--output", "json"]);
            let seen: Value = serde_json::from_str(&ended.stdout).map_err(|_| ended.to_string())?;
            match condition(&seen) {
                true => Ok(seen),
                false => {
                    let over = ["SUCCEEDED", "FAILED", "CANCELLED"].iter().any(|state| seen["state"] == *state);
                    assert!(!over, "job {job} ended before: {what}\n{seen:#}");
                    Err(format!("{seen:#}"))
                }
            }
        })
    }

    pub fn until_step(&self, job: &str, step: u64) -> Value {
        self.until(job, &format!("step {step}"), |seen| step_of(seen) >= step)
    }

    /// Waits for the end of a job with `coord wait`.
    pub fn wait(&self, job: &str) -> Ended {
        self.coord(&["wait", job])
    }

    /// Digest of the newest training state below a place, as `coord checkpoints digest` computes it.
    #[track_caller]
    pub fn digest(&self, place: &str) -> String {
        self.coord(&["checkpoints", "digest", place, "--output", "quiet"]).done().trim().to_owned()
    }

    /// Digest after the same training on this machine alone, where nothing was killed.
    #[track_caller]
    pub fn quiet_digest(&self, workers: u32, program: &[String]) -> String {
        let folder = self.folder().join(format!("quiet-{workers}"));
        let folder = folder.to_str().expect("a UTF-8 path");
        let workers = workers.to_string();
        let mut arguments = vec!["local", "train", "--workers", &workers, "--job-dir", folder, "--"];
        arguments.extend(program.iter().map(String::as_str));
        self.coord(&arguments).done();
        self.digest(folder)
    }

    fn logs(&self) -> String {
        let mut text = String::new();
        let mut paths: Vec<PathBuf> = std::fs::read_dir(self.folder())
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        paths.sort();
        for path in paths {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let log = String::from_utf8_lossy(&bytes).into_owned();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "==> {} <==\n{tail}", path.file_name().unwrap_or_default().display());
        }
        text
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
    }
}

fn running(seat: &mut Seat) -> &mut Process {
    seat.process.as_mut().unwrap_or_else(|| panic!("{} does not run", seat.name))
}

/// The newest step that a description tells; 0 before the first.
pub fn step_of(described: &Value) -> u64 {
    described["progress"]["step"].as_u64().unwrap_or(0)
}
