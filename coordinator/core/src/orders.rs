//! What an agent should hold, derived from the state alone: told on change and again on every stream.

use std::collections::BTreeSet;

use coord_common::order::{Launch, Rendezvous, Stop};
use coord_common::{Generation, Millis, Order, Rank, ReplicaKey, StopReason, WorkerId};

use crate::entry::CancelBy;
use crate::job::{Job, Stage};
use crate::state::ClusterState;

/// Everything for the replicas that this worker holds according to the state.
pub fn desired(state: &ClusterState, worker: &WorkerId) -> Vec<Order> {
    let mut orders = Vec::new();
    for (key, _) in state.held_by(worker) {
        let job = state.job(&key.job).expect("held replicas belong to jobs of the state");
        if !job.is_wanted() {
            orders.push(stop(job, key.rank));
            continue;
        }
        let replica = &job.replicas[key.rank.index()];
        if replica.stage == Stage::Launching {
            orders.push(launch(job, key.rank));
        }
        if job.begun && replica.stage == Stage::Ready {
            orders.push(rendezvous(job, key.rank));
        }
    }
    orders
}

/// What to tell an agent that reports these replicas: launches only for those it lacks, and a stop for each that nobody
/// wants, whether the state still holds it or not.
pub fn reconcile(state: &ClusterState, worker: &WorkerId, reported: &[ReplicaKey]) -> Vec<Order> {
    let reported: BTreeSet<&ReplicaKey> = reported.iter().collect();
    let mut orders = desired(state, worker);
    orders.retain(|order| !matches!(order, Order::Launch(launch) if reported.contains(&launch.key)));
    for key in reported {
        if !state.holds(worker, key) {
            orders.push(stop_stranger(state, key));
        }
    }
    orders
}

pub(crate) fn launch(job: &Job, rank: Rank) -> Order {
    Order::Launch(Launch {
        key: job.key(rank),
        spec: job.spec.clone(),
        world_size: job.replicas.len() as u32,
        job_dir: job.job_dir.clone(),
        secret: job.secret.clone(),
        run: job.request.to_string(),
    })
}

pub(crate) fn rendezvous(job: &Job, rank: Rank) -> Order {
    Order::Rendezvous(Rendezvous {
        key: job.key(rank),
        endpoints: job.replicas.iter().map(|replica| replica.endpoint.clone()).collect(),
        restore: job.restore.clone(),
    })
}

pub(crate) fn stop(job: &Job, rank: Rank) -> Order {
    let reason = match job.cancelled_by {
        Some(CancelBy::User) => StopReason::Cancelled,
        Some(CancelBy::TimeLimit) => StopReason::TimeLimit,
        None => StopReason::GenerationEnded,
    };
    Order::Stop(Stop { key: job.key(rank), reason, grace: job.spec.grace })
}

/// A replica that the state does not hold on this worker: nothing that it could still save would count.
fn stop_stranger(state: &ClusterState, key: &ReplicaKey) -> Order {
    let known = state.job(&key.job).is_some_and(|job| key.generation <= job.generation);
    let reason = if known && key.generation > Generation(0) { StopReason::Superseded } else { StopReason::Unknown };
    Order::Stop(Stop { key: key.clone(), reason, grace: Millis::ZERO })
}
