//! What the leader hears and the log does not hold: streams, heartbeats, progress. Lost with the leader, told again.

use std::collections::{BTreeMap, BTreeSet};

use coord_common::{Heartbeat, Incarnation, JobId, Millis, Progress, ReplicaKey, WorkerId};

use crate::state::ClusterState;
use crate::worker::Worker;

/// All times are of one clock that never goes back: the leader's, wall time at its start plus what its steady clock
/// counted since. `now` given to `plan` is of the same clock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Liveness {
    /// When this node became the leader, and later by the time in which it stood still: nobody's silence counts from
    /// before.
    pub since: Millis,
    pub workers: BTreeMap<WorkerId, Seen>,
    pub progress: BTreeMap<JobId, Progress>,
    pub policy: Policy,
}

/// Agents send a heartbeat every second: one whose last is older is not reachable now, whatever its stream looks like.
pub const REACHABLE_FOR: Millis = Millis(5_000);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub incarnation: Incarnation,
    /// Its stream is open.
    pub connected: bool,
    pub last_heartbeat: Millis,
    /// Replicas that it said it holds.
    pub alive: BTreeSet<ReplicaKey>,
    /// Those of them that say nothing to it, and since when.
    pub silent: BTreeMap<ReplicaKey, Millis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long a silent worker keeps its replicas.
    pub lease: Millis,
    /// How many finished jobs stay in the state.
    pub keep_jobs: usize,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { lease: Millis::from_seconds(60), keep_jobs: 10_000 }
    }
}

impl Liveness {
    /// Of a new leader that has heard nobody yet.
    pub fn new(since: Millis, policy: Policy) -> Liveness {
        Liveness { since, policy, ..Liveness::default() }
    }

    /// The leader itself stood still for the last `gap` and heard nobody: that time is nobody's silence.
    pub fn stood_still(&mut self, gap: Millis, now: Millis) {
        self.since = (self.since + gap).min(now);
        for seen in self.workers.values_mut() {
            seen.last_heartbeat = (seen.last_heartbeat + gap).min(now);
        }
    }

    /// A stream opened, or a heartbeat came over it.
    pub fn heard(&mut self, worker: &WorkerId, incarnation: &Incarnation, heartbeat: Heartbeat, now: Millis) {
        let Heartbeat { alive, silent } = heartbeat;
        let seen = Seen {
            incarnation: incarnation.clone(),
            connected: true,
            last_heartbeat: now,
            alive: alive.into_iter().collect(),
            silent: silent.into_iter().map(|(key, silence)| (key, now.since(silence))).collect(),
        };
        self.workers.insert(worker.clone(), seen);
    }

    /// The stream of this incarnation broke; a newer one's stays.
    pub fn disconnected(&mut self, worker: &WorkerId, incarnation: &Incarnation) {
        if let Some(seen) = self.workers.get_mut(worker).filter(|seen| seen.incarnation == *incarnation) {
            seen.connected = false;
        }
    }

    /// The end of a replica was reported after the newest heartbeat that named it.
    pub fn replica_ended(&mut self, worker: &WorkerId, key: &ReplicaKey) {
        if let Some(seen) = self.workers.get_mut(worker) {
            seen.alive.remove(key);
            seen.silent.remove(key);
        }
    }

    /// Its stream is open and its heartbeats come.
    pub fn is_reachable(&self, id: &WorkerId, worker: &Worker, now: Millis) -> bool {
        self.is_connected(id, worker) && self.silence(id, worker, now) <= REACHABLE_FOR
    }

    /// Its stream is open: it may be silent all the same.
    pub fn is_connected(&self, id: &WorkerId, worker: &Worker) -> bool {
        self.seen_as(id, worker).is_some_and(|seen| seen.connected)
    }

    pub fn last_heartbeat(&self, id: &WorkerId, worker: &Worker) -> Option<Millis> {
        self.seen_as(id, worker).map(|seen| seen.last_heartbeat)
    }

    /// Replicas that the agent said it holds.
    pub fn alive(&self, id: &WorkerId, worker: &Worker) -> impl Iterator<Item = &ReplicaKey> {
        self.seen_as(id, worker).into_iter().flat_map(|seen| &seen.alive)
    }

    /// Since when this replica has said nothing to its agent.
    pub fn silent_since(&self, id: &WorkerId, worker: &Worker, key: &ReplicaKey) -> Option<Millis> {
        self.seen_as(id, worker).and_then(|seen| seen.silent.get(key)).copied()
    }

    /// How long it has been silent, counted at the earliest from this leader's election and from its own registration:
    /// an agent that has just registered has not been silent, though no heartbeat of it was heard yet.
    pub fn silence(&self, id: &WorkerId, worker: &Worker, now: Millis) -> Millis {
        let last = self.last_heartbeat(id, worker).unwrap_or(Millis::ZERO);
        now.since(last.max(self.since).max(worker.since))
    }

    /// Slots that neither the state nor the agent's own word says are taken. A replica that only the agent knows of is
    /// one that was given up before it was gone: its slots are free when it is.
    pub fn free_slots(&self, state: &ClusterState, id: &WorkerId, worker: &Worker) -> u32 {
        let strangers = self.alive(id, worker).filter(|key| !state.holds(id, key));
        let slots_of = |key: &ReplicaKey| state.job(&key.job).map_or(1, |job| job.spec.slots_per_worker);
        let taken = state.slots_used(id).saturating_add(strangers.map(slots_of).sum());
        worker.registration.slots.saturating_sub(taken)
    }

    fn seen_as(&self, id: &WorkerId, worker: &Worker) -> Option<&Seen> {
        self.workers.get(id).filter(|seen| seen.incarnation == *worker.incarnation())
    }
}

#[cfg(test)]
mod tests {
    use coord_common::{Device, NumericClass, Registration};

    use super::*;
    use crate::{Command, Entry, apply, plan};

    /// Between the registration and the first heartbeat that the leader hears there is a moment in which it may plan.
    #[test]
    fn a_worker_that_has_just_registered_is_not_lost_under_an_old_leader() {
        let mut state = ClusterState::default();
        let seen = Liveness::new(Millis(0), Policy::default());
        for (start, at) in [("first", 600_000), ("second", 1_200_000)] {
            let registration = Registration {
                worker: WorkerId::parse("w").unwrap(),
                name: "host".to_owned(),
                incarnation: Incarnation::parse(start).unwrap(),
                slots: 1,
                device: Device::Cpu,
                numeric_class: NumericClass::new("cpu-1"),
                version: "1".to_owned(),
                host: "127.0.0.1".to_owned(),
                alive: Vec::new(),
                facts_acknowledged: 0,
            };
            let command = Command::RegisterWorker(registration);
            apply(&mut state, Entry { at: Millis(at), proposal: 0, command });
            assert_eq!(plan(&state, &seen, Millis(at + 100)), []);
            assert_eq!(plan(&state, &seen, Millis(at + 60_000)).len(), 1, "silent for the whole lease");
        }
    }
}
