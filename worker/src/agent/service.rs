//! The agent's loop: events in, effects out. All decisions are `state`'s.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coord_common::convert::{
    fact_to_wire, heartbeat_to_wire, key_from_wire, key_to_wire, order_from_wire, progress_to_wire,
    registration_to_wire,
};
use coord_common::ids::{Incarnation, Step, WorkerId};
use coord_common::registration::Registration;
use coord_common::resources::{Device, NumericClass};
use coord_common::time::Millis;
use coord_io::shutdown::Shutdown;
use coord_proto::v1::agent_message::Message as Said;
use coord_proto::v1::leader_message::Message as Told;
use coord_proto::v1::{AgentMessage, LeaderMessage, Leaving, LogData, ReadLog, ReplicaKey, ReplicaProgress};
use rustix::process::Signal;
use thiserror::Error;
use tokio::sync::mpsc;

use super::answers::Answers;
use super::leftovers::Leftovers;
use super::link::{LinkEvent, keep};
use super::logs::Logs;
use super::metrics::Metrics;
use super::replicas::{Environment, Replicas};
use super::settings::AgentSettings;
use super::state::{AgentState, Effect, Event};
use super::unsent::Unsent;

const TICK: Duration = Duration::from_millis(100);
const QUEUE: usize = 4096;
/// A leader that acknowledges nothing more does not hold up the agent's end for longer. All three limits together stay
/// below the 30 s after which Kubernetes kills.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(18);
/// A store that is unwell does not either.
const LOGS_TIMEOUT: Duration = Duration::from_secs(8);
/// Nor does one that does not answer a goodbye.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);
const LOG_PIECE_MAX: u32 = 1 << 20;

#[derive(Debug, Error)]
pub enum AgentError {
    #[error("work directory {path}: {source}")]
    WorkDir { path: String, source: io::Error },
    #[error("work directory {path} belongs to another agent that runs now")]
    Locked { path: String },
    #[error("listen on {address} for HTTP: {source}")]
    Http { address: String, source: io::Error },
    #[error("find this program: {0}")]
    Program(io::Error),
    #[error("install signal handlers: {0}")]
    Signals(io::Error),
}

impl AgentError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Locked { .. } => Some("give each agent of a host a `--work-dir` of its own"),
            Self::Http { .. } => Some("give each agent of a host an `--http` address of its own, or `--http off`"),
            Self::WorkDir { .. } | Self::Program(_) | Self::Signals(_) => None,
        }
    }
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(settings: AgentSettings) -> Result<(), AgentError> {
    let work_dir = |source| AgentError::WorkDir { path: settings.work_dir.display().to_string(), source };
    fs::create_dir_all(&settings.work_dir).map_err(work_dir)?;
    let _lock = lock(&settings.work_dir)?;
    let worker = worker_id(&settings.work_dir).map_err(work_dir)?;
    let leftovers = Leftovers::new(&settings.work_dir).map_err(work_dir)?;
    leftovers.end_all().map_err(work_dir)?;
    let logs = Logs::new(&settings.work_dir).map_err(work_dir)?;
    let unsent = Unsent::new(&settings.work_dir);
    let left_behind = unsent.find().map_err(work_dir)?;
    let mut shutdown = Shutdown::install().map_err(AgentError::Signals)?;
    let numeric_class = crate::numeric_class::probe();
    let metrics = Metrics::new();
    metrics.slots.set(settings.slots.into());
    if let Some(address) = settings.http {
        let connected = metrics.connected.clone();
        let ready = Arc::new(move || match connected.get() {
            1 => Ok(()),
            _ => Err("no stream to a coordinator".to_owned()),
        });
        let routes = coord_io::http::routes(metrics.registry.clone(), ready);
        let bound = coord_io::http::serve(address, routes, shutdown.clone())
            .await
            .map_err(|source| AgentError::Http { address: address.to_string(), source })?;
        tracing::info!(%bound, "http");
    }
    let program = std::env::current_exe().map_err(AgentError::Program)?;
    let registration = registration(&settings, &worker, &numeric_class);
    tracing::info!(worker = %worker, slots = settings.slots, numeric_class, "agent started");
    let environment = Environment {
        program: program.clone(),
        threads: settings.threads_per_slot,
        numeric_class,
        host: settings.host.clone(),
    };
    let (event_sender, mut events) = mpsc::channel(QUEUE);
    let (link_sender, mut link) = mpsc::channel(QUEUE);
    let linking = tokio::spawn(keep(settings.coordinators, link_sender));
    let mut agent = Agent {
        state: AgentState::new(registration, settings.replica_silence),
        replicas: Replicas::new(environment, logs.clone(), leftovers, unsent.clone(), event_sender.clone()),
        answers: Answers::new(program),
        logs,
        unsent,
        leader: None,
        metrics,
        events: event_sender,
        begun: Instant::now(),
        left: None,
    };
    agent.replicas.finish_logs(left_behind);
    let mut tick = tokio::time::interval(TICK);
    let mut asked: Option<Instant> = None;
    while !agent.is_done() {
        tokio::select! {
            Some(event) = events.recv() => agent.on(event),
            Some(event) = link.recv() => agent.on_link(event),
            _ = tick.tick() => {
                agent.on(Event::Tick);
                if agent.left.is_none() && asked.is_some_and(|at| at.elapsed() > LEAVE_TIMEOUT) {
                    tracing::warn!("leaving with facts that no leader has acknowledged");
                    agent.left = Some(Instant::now());
                }
            }
            _ = shutdown.requested(), if asked.is_none() => {
                tracing::info!("leaving: replicas are stopped first");
                asked = Some(Instant::now());
                agent.on(Event::Shutdown);
            }
        }
    }
    if agent.leader.take().is_some() {
        // The goodbye is on its way: the stream is closed in order, and the leader's end of it awaited.
        let closed = async { while !matches!(link.recv().await, None | Some(LinkEvent::Closed)) {} };
        if tokio::time::timeout(GOODBYE_TIMEOUT, closed).await.is_err() {
            tracing::info!("the coordinator did not close the stream in time");
        }
    }
    linking.abort();
    Ok(())
}

/// Held for the life of the agent: two of one work directory would end each other's replicas.
fn lock(work_dir: &Path) -> Result<File, AgentError> {
    let path = work_dir.display().to_string();
    let open =
        File::create(work_dir.join("lock")).map_err(|source| AgentError::WorkDir { path: path.clone(), source })?;
    match open.try_lock() {
        Ok(()) => Ok(open),
        Err(_) => Err(AgentError::Locked { path }),
    }
}

/// Made once for a work directory.
fn worker_id(work_dir: &Path) -> io::Result<WorkerId> {
    let path = work_dir.join("worker-id");
    if let Ok(text) = fs::read_to_string(&path)
        && let Ok(worker) = WorkerId::parse(text.trim())
    {
        return Ok(worker);
    }
    let text = uuid::Uuid::new_v4().simple().to_string();
    fs::write(&path, format!("{text}\n"))?;
    WorkerId::parse(&text).map_err(io::Error::other)
}

fn registration(settings: &AgentSettings, worker: &WorkerId, numeric_class: &str) -> Registration {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let folder = settings.work_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Registration {
        worker: worker.clone(),
        name: format!("{}/{folder}", host.trim()),
        incarnation: Incarnation::parse(&uuid::Uuid::new_v4().simple().to_string())
            .expect("hexadecimal digits are an id"),
        slots: settings.slots,
        device: Device::Cpu,
        numeric_class: NumericClass::new(numeric_class),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: settings.host.clone(),
        alive: Vec::new(),
        facts_acknowledged: 0,
    }
}

struct Agent {
    state: AgentState,
    replicas: Replicas,
    answers: Answers,
    logs: Logs,
    unsent: Unsent,
    leader: Option<mpsc::Sender<AgentMessage>>,
    metrics: Metrics,
    events: mpsc::Sender<Event>,
    begun: Instant,
    /// Since when nothing but logs is left to do.
    left: Option<Instant>,
}

impl Agent {
    fn now(&self) -> Millis {
        Millis(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn on(&mut self, event: Event) {
        if let Event::Exited { key, .. } = &event {
            self.replicas.forget(key);
            self.metrics.forget(key.job.as_str());
        }
        let now = self.now();
        for effect in self.state.on(event, now) {
            self.perform(effect);
        }
        self.metrics.replicas.set(self.replicas.count() as i64);
        self.metrics.connected.set(self.state.is_connected().into());
        self.metrics.facts_waiting.set(self.state.facts_waiting() as i64);
    }

    /// Until storage has all logs their readers still come here.
    fn is_done(&self) -> bool {
        let Some(left) = self.left else { return false };
        if self.unsent.is_empty() {
            return true;
        }
        let too_late = left.elapsed() > LOGS_TIMEOUT;
        if too_late {
            tracing::warn!("storage does not have all logs yet; the next start with this work directory goes on");
        }
        too_late
    }

    fn on_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Open(leader) => {
                self.leader = Some(leader);
                self.on(Event::Connected);
            }
            LinkEvent::Closed => {
                self.leader = None;
                self.on(Event::Disconnected);
            }
            LinkEvent::Message(message) => self.on_message(*message),
        }
    }

    fn on_message(&mut self, message: LeaderMessage) {
        match order_from_wire(&message) {
            Ok(Some(order)) => return self.on(Event::Order(order)),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the leader sent an order that cannot be read");
                return;
            }
        }
        match message.message {
            Some(Told::Registered(registered)) => self.on(Event::Registered { begun: Millis(registered.begun_millis) }),
            Some(Told::Acknowledge(acknowledge)) => self.on(Event::Acknowledged(acknowledge.sequence)),
            Some(Told::ReadLog(read)) => self.read_log(&read),
            Some(Told::Ask(ask)) => self.ask(ask),
            _ => {}
        }
    }

    /// Sends to the leader. A queue that is full means a stream that no longer moves: it is given up, and everything
    /// that matters is sent again over the next one.
    fn send(&mut self, said: Said) {
        if let Some(leader) = &self.leader
            && let Err(mpsc::error::TrySendError::Full(_)) = leader.try_send(AgentMessage { message: Some(said) })
        {
            tracing::warn!("the stream to the leader does not move; giving it up");
            self.leader = None;
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Register => self.send(Said::Register(registration_to_wire(&self.state.registration()))),
            Effect::Heartbeat(heartbeat) => self.send(Said::Heartbeat(heartbeat_to_wire(&heartbeat))),
            Effect::SendFact(fact) => self.send(Said::Fact(fact_to_wire(&fact))),
            Effect::SendProgress { key, progress } => {
                if progress.step > Step(0) {
                    self.show(key.job.as_str(), &progress);
                }
                let (key, progress) = (Some(key_to_wire(&key)), Some(progress_to_wire(&progress)));
                self.send(Said::Progress(ReplicaProgress { key, progress }));
            }
            Effect::SendLeaving => self.send(Said::Leaving(Leaving {})),
            Effect::Start(launch) => {
                tracing::info!(job = %launch.key.job, generation = launch.key.generation.0, rank = launch.key.rank.0, "starting a replica");
                match self.replicas.start(&launch) {
                    Ok(()) => self.metrics.launches.inc(),
                    Err(reason) => {
                        tracing::warn!(job = %launch.key.job, reason, "a replica could not be started");
                        // Through the queue, so that effects are never performed inside effects.
                        let event = Event::StartFailed { key: launch.key, reason };
                        let events = self.events.clone();
                        tokio::spawn(async move { events.send(event).await });
                    }
                }
            }
            Effect::Meet(rendezvous) => self.replicas.meet(&rendezvous),
            Effect::Recorded { key, step } => self.replicas.recorded(&key, step),
            Effect::Terminate(key) => self.replicas.signal(&key, Signal::TERM),
            Effect::Kill(key) => self.replicas.signal(&key, Signal::KILL),
            Effect::Leave => self.left = self.left.or(Some(Instant::now())),
        }
    }

    fn show(&self, job: &str, progress: &coord_common::progress::Progress) {
        self.metrics.step.with_label_values(&[job]).set(progress.step.0 as f64);
        self.metrics.loss.with_label_values(&[job]).set(progress.loss);
        self.metrics.tokens_per_second.with_label_values(&[job]).set(progress.tokens_per_second);
        self.metrics.checkpoint_seconds.with_label_values(&[job]).set(progress.checkpoint_seconds);
    }

    fn read_log(&mut self, read: &ReadLog) {
        let key = ReplicaKey { job: read.job.clone(), generation: read.generation, rank: read.rank };
        let piece = key_from_wire(&key)
            .ok()
            .and_then(|key| self.logs.read(&key, read.position, read.limit.min(LOG_PIECE_MAX) as usize));
        let data = match piece {
            Some(piece) => LogData { request: read.request, data: piece.data.into(), known: true, ended: piece.ended },
            None => LogData { request: read.request, ..LogData::default() },
        };
        self.send(Said::Log(data));
    }

    fn ask(&mut self, ask: coord_proto::v1::Ask) {
        let request = ask.request;
        let answer = self.answers.ask(ask);
        let Some(leader) = self.leader.clone() else {
            return;
        };
        tokio::spawn(async move {
            let answer = answer.await.unwrap_or_else(|_| coord_proto::v1::Answer {
                request,
                error: "the answering process went away; ask again".to_owned(),
                ..Default::default()
            });
            // A leader that is gone has told its client so.
            let _ = leader.send(AgentMessage { message: Some(Said::Answer(answer)) }).await;
        });
    }
}
