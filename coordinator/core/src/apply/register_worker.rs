//! A worker offers its slots, or comes back after a break or a restart.

use std::collections::BTreeSet;

use coord_common::{Millis, Registration, ReplicaKey};

use super::lose_worker::lose_replicas;
use crate::effect::Effect;
use crate::limits::WORKERS_MAX;
use crate::reply::{Rejection, Reply};
use crate::state::ClusterState;
use crate::worker::Worker;

pub fn apply(state: &mut ClusterState, at: Millis, registration: Registration, out: &mut Vec<Effect>) -> Reply {
    let id = registration.worker.clone();
    let Some(known) = state.worker(&id) else {
        if state.workers().len() >= WORKERS_MAX {
            let text = format!("the coordinator knows {WORKERS_MAX} workers, the most it takes");
            return Reply::Rejected(Rejection::new("too_many_workers", text));
        }
        state.put_worker(Worker::new(&registration, at));
        return Reply::Done;
    };
    let differs = known.differs_in_kind(&registration);
    if *known.incarnation() == registration.incarnation {
        if differs {
            let text = "slots, device and numeric class of an agent cannot change while it runs";
            let refusal = Rejection::new("registration_changed", text);
            return Reply::Rejected(refusal.with_hint("restart the agent with a new incarnation"));
        }
        come_back(state, at, registration);
        return Reply::Done;
    }
    // A new start of the agent: replicas that it did not take over are gone, and the numbers of its facts begin anew.
    state.put_worker(Worker::new(&registration, at));
    let kept: BTreeSet<ReplicaKey> = if differs { BTreeSet::new() } else { registration.alive.into_iter().collect() };
    lose_replicas(state, at, &id, &kept, "its agent was started anew", out);
    Reply::Done
}

/// The same agent on a new stream. Replicas missing from its list have ended, and their facts are on the way.
fn come_back(state: &mut ClusterState, at: Millis, registration: Registration) {
    let worker = state.worker_mut(&registration.worker).expect("the caller found it");
    let facts_applied = worker.facts_applied.max(registration.facts_acknowledged);
    let leaving = worker.leaving;
    *worker = Worker { facts_applied, leaving, ..Worker::new(&registration, at) };
}
