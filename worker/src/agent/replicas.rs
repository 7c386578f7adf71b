//! The agent's child processes: started, told, signalled, heard.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use coord_common::convert::{
    cause_from_wire, checkpoint_from_wire, checkpoint_to_wire, order_to_wire, progress_from_wire,
};
use coord_common::ids::Step;
use coord_common::order::{Launch, Order, Rendezvous};
use coord_common::progress::Progress;
use coord_common::rank::ReplicaKey;
use coord_proto::v1::leader_message::Message as Told;
use coord_proto::v1::replica_message::Message as Word;
use coord_proto::v1::replica_order::Message as OrderBody;
use coord_proto::v1::{ReplicaMeet, ReplicaMessage, ReplicaOrder, ReplicaRecorded, ReplicaStart};
use rustix::process::Signal;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::leftovers::Leftovers;
use super::logs::Logs;
use super::state::Event;
use super::unsent::{self, Leftover, Unsent};
use super::upload::upload;
use crate::launch::{Launched, ReplicaEvent, Stream, signal_group, spawn};

/// What every replica of this agent is started with.
#[derive(Debug, Clone)]
pub struct Environment {
    pub program: PathBuf,
    pub threads: u32,
    pub numeric_class: String,
    pub host: String,
}

struct Running {
    pid: u32,
    orders: mpsc::Sender<ReplicaOrder>,
}

pub struct Replicas {
    environment: Environment,
    logs: Logs,
    leftovers: Leftovers,
    unsent: Unsent,
    running: BTreeMap<ReplicaKey, Running>,
    uploads: BTreeMap<ReplicaKey, JoinHandle<()>>,
    events: mpsc::Sender<Event>,
}

impl Replicas {
    pub fn new(
        environment: Environment,
        logs: Logs,
        leftovers: Leftovers,
        unsent: Unsent,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self { environment, logs, leftovers, unsent, running: BTreeMap::new(), uploads: BTreeMap::new(), events }
    }

    pub fn count(&self) -> usize {
        self.running.len()
    }

    /// Pushes what an earlier start of this agent left behind; a log that is begun anew ends the push of the old one.
    pub fn finish_logs(&mut self, left_behind: Vec<Leftover>) {
        let turn = Arc::new(Semaphore::new(1));
        for leftover in left_behind {
            self.uploads.insert(leftover.key.clone(), tokio::spawn(unsent::finish(leftover, turn.clone())));
        }
    }

    /// Starts a replica and everything that listens to it.
    pub fn start(&mut self, launch: &Launch) -> Result<(), String> {
        if launch.spec.trainer != "translate" {
            return Err(format!("this worker has no trainer named {}; it has: translate", launch.spec.trainer));
        }
        self.begin(launch).map_err(|error| format!("start a replica: {error}"))
    }

    fn begin(&mut self, launch: &Launch) -> io::Result<()> {
        let key = launch.key.clone();
        self.uploads.retain(|_, upload| !upload.is_finished());
        if let Some(of_an_earlier_job) = self.uploads.remove(&key) {
            of_an_earlier_job.abort();
        }
        self.logs.begin(&key)?;
        self.unsent.note(&key, &launch.job_dir)?;
        let Launched { pid, orders, events } = spawn(&self.environment.program, &["train".into()], &[])?;
        if let Err(error) = self.leftovers.note(pid, &key) {
            tracing::warn!(%error, "note a replica's process id");
        }
        let args: Vec<String> =
            launch.spec.args.iter().map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
        let line = format!("Running command: {} {}", launch.spec.trainer, args.join(" "));
        self.logs.append(&key, Stream::Platform, line.trim_end().as_bytes());
        // The wire form of a launch is made in one place.
        let Some(Told::Launch(wire)) = order_to_wire(&Order::Launch(launch.clone())).message else {
            return Err(io::Error::other("a launch has no wire form"));
        };
        let start = ReplicaStart {
            launch: Some(wire),
            threads: launch.spec.cpus.unwrap_or(self.environment.threads),
            numeric_class: self.environment.numeric_class.clone(),
            host: self.environment.host.clone(),
            local: false,
        };
        self.running.insert(key.clone(), Running { pid, orders });
        self.tell(&key, OrderBody::Start(start));
        let pushed = upload(self.logs.clone(), self.unsent.clone(), key.clone(), launch.job_dir.clone());
        self.uploads.insert(key.clone(), tokio::spawn(pushed));
        tokio::spawn(listen(key, pid, events, self.logs.clone(), self.leftovers.clone(), self.events.clone()));
        Ok(())
    }

    fn tell(&self, key: &ReplicaKey, order: OrderBody) {
        if let Some(running) = self.running.get(key) {
            // A full queue means a replica that reads nothing: it is about to end, or will be ended.
            let _ = running.orders.try_send(ReplicaOrder { message: Some(order) });
        }
    }

    pub fn meet(&self, rendezvous: &Rendezvous) {
        let restore = rendezvous.restore.as_ref().map(checkpoint_to_wire);
        self.tell(&rendezvous.key, OrderBody::Meet(ReplicaMeet { endpoints: rendezvous.endpoints.clone(), restore }));
    }

    pub fn recorded(&self, key: &ReplicaKey, step: Step) {
        self.tell(key, OrderBody::Recorded(ReplicaRecorded { step: step.0 }));
    }

    pub fn signal(&self, key: &ReplicaKey, signal: Signal) {
        if let Some(running) = self.running.get(key) {
            signal_group(running.pid, signal);
        }
    }

    /// Call when its end was seen.
    pub fn forget(&mut self, key: &ReplicaKey) {
        self.running.remove(key);
    }
}

/// Hears one replica to its end. Its output goes to the log, everything else to the agent.
async fn listen(
    key: ReplicaKey,
    pid: u32,
    mut heard: mpsc::Receiver<ReplicaEvent>,
    logs: Logs,
    leftovers: Leftovers,
    events: mpsc::Sender<Event>,
) {
    while let Some(event) = heard.recv().await {
        let event = match event {
            ReplicaEvent::Line(stream, line) => {
                logs.append(&key, stream, &line);
                continue;
            }
            ReplicaEvent::Message(message) => match translate(&key, message) {
                Some(event) => event,
                None => continue,
            },
            ReplicaEvent::Exited(exited) => {
                // What the replica's own children still do ends with it.
                signal_group(pid, Signal::KILL);
                leftovers.forget(pid);
                let how = match (exited.code, exited.signal) {
                    (Some(code), _) => format!("exit status {code}"),
                    (None, Some(signal)) => format!("signal {signal}"),
                    (None, None) => "an unknown status".to_owned(),
                };
                logs.append(&key, Stream::Platform, format!("Module completed with {how}.").as_bytes());
                let tail = logs.end(&key);
                Event::Exited { key: key.clone(), exited, tail }
            }
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
}

fn translate(key: &ReplicaKey, message: ReplicaMessage) -> Option<Event> {
    let key = key.clone();
    Some(match message.message? {
        Word::Listening(listening) => Event::Listening { key, endpoint: listening.endpoint },
        Word::Started(started) => Event::Started { key, step: Step(started.step) },
        Word::Pulse(_) => Event::Pulse { key },
        Word::Progress(progress) => Event::Progressed { key, progress: progress_from_wire(&progress) },
        Word::Checkpoint(record) => Event::Saved { key, record: checkpoint_from_wire(&record) },
        Word::Finished(finished) => {
            Event::Finished { key, cause: cause_from_wire(&finished.cause), message: finished.message }
        }
        Word::Stage(stage) => {
            Event::Progressed { key, progress: Progress { stage: stage.text, ..Progress::default() } }
        }
    })
}
