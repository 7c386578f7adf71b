//! The agent as a step function: what it was told and saw, in; what it does, out. No clock, no I/O.

use std::collections::BTreeMap;

use coord_common::exit_rule::{Cause, Exit, SIGKILL, SIGTERM};
use coord_common::fact::{ExitReport, Fact, FactBody};
use coord_common::heartbeat::Heartbeat;
use coord_common::ids::Step;
use coord_common::order::{Launch, Order, Stop};
use coord_common::progress::Progress;
use coord_common::rank::{Rank, ReplicaKey};
use coord_common::registration::Registration;
use coord_common::time::Millis;

use super::ended::EndedReplicas;
pub use super::events::{Effect, Event};
use super::hearing::Hearing;
use super::outbox::Outbox;
use crate::launch::Exited;

/// Heartbeats leave this often.
pub const HEARTBEAT: Millis = Millis(1_000);
/// A signal may not reach a process that was just forking: it is sent again until the end is seen.
const KILL_AGAIN: Millis = Millis(1_000);

#[derive(Debug, Default)]
struct Held {
    /// Of a cluster that lost its state: it is being ended, and nobody waits for what it has to say.
    disowned: bool,
    met: bool,
    stopping: bool,
    kill_at: Option<Millis>,
    last_word: Option<(Cause, String)>,
    /// Its newest gauge.
    progress: Progress,
    samples: u64,
}

#[derive(Debug)]
pub struct AgentState {
    registration: Registration,
    replicas: BTreeMap<ReplicaKey, Held>,
    ended: EndedReplicas,
    outbox: Outbox,
    connected: bool,
    /// The leader has taken the registration over this stream, and so takes facts.
    registered: bool,
    /// Of the cluster that it serves; nothing before the first registration.
    begun: Option<Millis>,
    heartbeat_at: Millis,
    leaving: bool,
    /// A replica that says nothing for so long is ended: its process is stopped or hangs, and its peers wait for it.
    replica_silence: Millis,
    hearing: Hearing,
}

impl AgentState {
    pub fn new(registration: Registration, replica_silence: Millis) -> Self {
        Self {
            registration,
            replicas: BTreeMap::new(),
            ended: EndedReplicas::default(),
            outbox: Outbox::default(),
            connected: false,
            registered: false,
            begun: None,
            heartbeat_at: Millis::ZERO,
            leaving: false,
            replica_silence,
            hearing: Hearing::default(),
        }
    }

    /// How the agent introduces itself now.
    pub fn registration(&self) -> Registration {
        Registration { alive: self.alive(), ..self.registration.clone() }
    }

    pub fn alive(&self) -> Vec<ReplicaKey> {
        self.replicas.iter().filter(|(_, held)| !held.disowned).map(|(key, _)| key.clone()).collect()
    }

    pub fn facts_waiting(&self) -> usize {
        self.outbox.len()
    }

    pub fn is_connected(&self) -> bool {
        self.connected
    }

    pub fn on(&mut self, event: Event, now: Millis) -> Vec<Effect> {
        let mut out = Vec::new();
        if let Some(key) = event.speaker() {
            self.hearing.heard(key, now);
        }
        match event {
            Event::Connected => {
                self.connected = true;
                self.heartbeat_at = now + HEARTBEAT;
                out.push(Effect::Register);
                if self.leaving {
                    out.push(Effect::SendLeaving);
                }
            }
            Event::Disconnected => (self.connected, self.registered) = (false, false),
            Event::Registered { begun } => self.registered(begun, now, &mut out),
            Event::Order(order) => self.order(order, now, &mut out),
            Event::Acknowledged(sequence) => self.acknowledged(sequence, &mut out),
            Event::Listening { key, endpoint } => self.fact(key, FactBody::Ready { endpoint }, &mut out),
            Event::Started { key, step } => self.fact(key, FactBody::Running { step }, &mut out),
            Event::Pulse { .. } => {}
            Event::Progressed { key, progress } => self.progressed(key, progress, &mut out),
            Event::Saved { key, record } => self.fact(key, FactBody::Checkpoint(record), &mut out),
            Event::Finished { key, cause, message } => {
                if let Some(held) = self.replicas.get_mut(&key) {
                    held.last_word = Some((cause, message));
                }
            }
            Event::Exited { key, exited, tail } => self.exited(key, exited, tail, &mut out),
            Event::StartFailed { key, reason } => {
                self.hearing.end(&key);
                if self.replicas.remove(&key).is_some_and(|held| !held.disowned) {
                    self.ended.add(key.clone());
                    self.fact(key, FactBody::Refused { reason }, &mut out);
                }
            }
            Event::Tick => self.tick(now, &mut out),
            Event::Shutdown => self.shutdown(now, &mut out),
        }
        if self.leaving && self.replicas.is_empty() && (self.outbox.is_empty() || !self.connected) {
            out.push(Effect::Leave);
        }
        out
    }

    fn order(&mut self, order: Order, now: Millis, out: &mut Vec<Effect>) {
        match order {
            Order::Launch(launch) => self.launch(launch, now, out),
            Order::Rendezvous(rendezvous) => {
                if let Some(held) = self.replicas.get_mut(&rendezvous.key)
                    && !held.met
                {
                    held.met = true;
                    out.push(Effect::Meet(rendezvous));
                }
            }
            Order::Stop(stop) => self.stop(stop, now, out),
        }
    }

    /// A cluster that lost its state counts generations from 1 again, and its users take old names again: nothing of what
    /// this agent did before may be taken for what it does now.
    fn registered(&mut self, begun: Millis, now: Millis, out: &mut Vec<Effect>) {
        self.registered = true;
        if self.begun.replace(begun).is_some_and(|before| before != begun) {
            for (key, held) in &mut self.replicas {
                held.disowned = true;
                held.kill_at = Some(now + KILL_AGAIN);
                out.push(Effect::Kill(key.clone()));
            }
            self.ended = EndedReplicas::default();
            self.outbox = Outbox::after(self.registration.facts_acknowledged);
            // What it holds no more makes room for what comes.
            self.heartbeat_at = now;
        }
        out.extend(self.outbox.facts().cloned().map(Effect::SendFact));
    }

    /// A launch is started at most once in the agent's life.
    fn launch(&mut self, launch: Launch, now: Millis, out: &mut Vec<Effect>) {
        let key = launch.key.clone();
        // Where a disowned replica is still ending, the leader tells the launch again until it shows.
        if self.replicas.contains_key(&key) || self.ended.knows(&key) {
            return;
        }
        if self.leaving {
            self.ended.add(key.clone());
            self.fact(key, FactBody::Refused { reason: "the agent is leaving".to_owned() }, out);
            return;
        }
        self.hearing.begin(key.clone(), now);
        self.replicas.insert(key, Held::default());
        out.push(Effect::Start(launch));
    }

    fn stop(&mut self, stop: Stop, now: Millis, out: &mut Vec<Effect>) {
        let Some(held) = self.replicas.get_mut(&stop.key) else {
            if !self.outbox.reports_end(&stop.key) {
                // A launch that was lost on the way must not hold its slots for ever.
                self.ended.add(stop.key.clone());
                let exit = Exit { cause: Cause::Stopped, ..Exit::default() };
                let report = ExitReport { exit, message: "never started".to_owned(), ..ExitReport::default() };
                self.fact(stop.key, FactBody::Exited(report), out);
            }
            return;
        };
        let kill_at = now + stop.grace;
        held.kill_at = Some(held.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
        if !held.stopping {
            held.stopping = true;
            out.push(if stop.grace == Millis::ZERO { Effect::Kill(stop.key) } else { Effect::Terminate(stop.key) });
        }
    }

    fn acknowledged(&mut self, sequence: u64, out: &mut Vec<Effect>) {
        self.registration.facts_acknowledged = self.registration.facts_acknowledged.max(sequence);
        for fact in self.outbox.acknowledged(sequence) {
            if let Fact { key, body: FactBody::Checkpoint(record), .. } = fact
                && self.replicas.contains_key(&key)
            {
                out.push(Effect::Recorded { key, step: record.step });
            }
        }
    }

    fn progressed(&mut self, key: ReplicaKey, progress: Progress, out: &mut Vec<Effect>) {
        let Some(held) = self.replicas.get_mut(&key) else {
            return;
        };
        if let Some(samples) = progress.samples_by_rank.get(key.rank.index()) {
            held.samples = *samples;
        }
        // Before the first step there are no figures, only a stage.
        if progress.step >= held.progress.step && progress.step > Step(0) {
            held.progress = progress.clone();
        }
        // One replica speaks for the job; what the others say of themselves is kept for their end.
        if key.rank == Rank::MASTER && !held.disowned {
            out.push(Effect::SendProgress { key, progress });
        }
    }

    fn exited(&mut self, key: ReplicaKey, exited: Exited, tail: String, out: &mut Vec<Effect>) {
        let Exited { code, signal, out_of_memory } = exited;
        self.hearing.end(&key);
        let Some(held) = self.replicas.remove(&key).filter(|held| !held.disowned) else {
            return;
        };
        self.ended.add(key.clone());
        let (cause, message) = held.last_word.unwrap_or_else(|| {
            // Ended by our own signal: not the program's fault. Any other signal is, even where the order to stop came
            // before its end was seen, because peers that fell with it were faster to report.
            let ours = matches!(signal, Some(SIGTERM | SIGKILL));
            let cause = match out_of_memory {
                _ if held.stopping && ours => Cause::Stopped,
                true => Cause::OutOfMemory,
                false => Cause::Unsaid,
            };
            (cause, String::new())
        });
        let report = ExitReport {
            exit: Exit { code, signal, cause },
            message,
            tail,
            last_step: held.progress.step,
            steps: held.progress.steps,
            loss: Some(held.progress.loss).filter(|loss| held.progress.step > Step(0) && loss.is_finite()),
            samples: held.samples,
        };
        self.fact(key, FactBody::Exited(report), out);
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.hearing.tick(now);
        self.end_silent_replicas(now);
        for (key, held) in &mut self.replicas {
            if held.kill_at.is_some_and(|at| at <= now) {
                held.kill_at = Some(now + KILL_AGAIN);
                out.push(Effect::Kill(key.clone()));
            }
        }
        if self.connected && self.heartbeat_at <= now {
            self.heartbeat_at = now + HEARTBEAT;
            out.push(Effect::Heartbeat(Heartbeat { alive: self.alive(), silent: self.hearing.silent(now) }));
        }
    }

    fn end_silent_replicas(&mut self, now: Millis) {
        let seconds = self.replica_silence.seconds_rounded_up();
        for (key, held) in &mut self.replicas {
            let is_over = self.hearing.silence(key, now) > self.replica_silence;
            if is_over && held.last_word.is_none() && held.kill_at.is_none() {
                held.last_word = Some((Cause::Killed, format!("it was silent for {seconds} s and its agent ended it")));
                held.kill_at = Some(now);
            }
        }
    }

    fn shutdown(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if self.leaving {
            // Asked twice: at once.
            out.extend(self.replicas.keys().cloned().map(Effect::Kill));
            return;
        }
        self.leaving = true;
        if self.connected {
            out.push(Effect::SendLeaving);
        }
        for (key, held) in &mut self.replicas {
            held.stopping = true;
            held.kill_at = Some(now + coord_common::job::GRACE_DEFAULT);
            out.push(Effect::Terminate(key.clone()));
        }
    }

    fn fact(&mut self, key: ReplicaKey, body: FactBody, out: &mut Vec<Effect>) {
        if self.replicas.get(&key).is_some_and(|held| held.disowned) {
            return;
        }
        let fact = self.outbox.add(key, body);
        if self.registered {
            out.push(Effect::SendFact(fact));
        }
    }
}

#[cfg(test)]
mod tests;
