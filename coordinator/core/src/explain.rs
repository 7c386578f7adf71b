//! Every reason why a job is not running, for people.

use coord_common::{JobId, Phase, Rank, WorkerId};

use crate::blocker::Blocker;
use crate::job::{Job, Replica, Stage};
use crate::liveness::Liveness;
use crate::placement::Verdict;
use crate::schedule;
use crate::state::ClusterState;

/// Empty for jobs that run undisturbed, that are over, or that do not exist. Never empty for a waiting job.
pub fn explain(state: &ClusterState, seen: &Liveness, id: &JobId) -> Vec<Blocker> {
    let Some(job) = state.job(id) else { return Vec::new() };
    let mut blockers = Vec::new();
    if let Some(ending) = job.ending.as_ref().filter(|_| job.phase == Phase::Preparing) {
        blockers.push(Blocker::Interrupted { reason: ending.reason.clone() });
    }
    match schedule::verdict_on(state, seen, state.now(), id) {
        Some(Verdict::Place(placement)) => {
            blockers.push(Blocker::BeingPlaced { replicas: placement.workers.len() as u32 });
        }
        Some(Verdict::Wait(reasons)) => blockers.extend(reasons),
        None => blockers.extend(of_replicas(job)),
    }
    blockers.extend(unreachable(state, seen, job));
    blockers
}

fn of_replicas(job: &Job) -> Option<Blocker> {
    let ranks = |wanted: fn(&Replica) -> bool| -> Vec<Rank> {
        job.ranks().filter(|(_, replica)| wanted(replica)).map(|(rank, _)| rank).collect()
    };
    match job.phase {
        Phase::Preparing if job.begun => {
            Some(Blocker::WaitingForFirstStep { ranks: ranks(|replica| replica.stage == Stage::Ready) })
        }
        Phase::Preparing => {
            Some(Blocker::WaitingForReplicas { ranks: ranks(|replica| replica.stage == Stage::Launching) })
        }
        Phase::Cancelling => Some(Blocker::ReplicasEnding { ranks: ranks(Replica::is_live) }),
        Phase::Queued | Phase::Running | Phase::Succeeded | Phase::Failed | Phase::Cancelled => None,
    }
}

fn unreachable(state: &ClusterState, seen: &Liveness, job: &Job) -> Option<Blocker> {
    let is_cut_off = |id: &WorkerId| state.worker(id).is_none_or(|worker| !seen.is_connected(id, worker));
    let mut workers: Vec<WorkerId> = job.live().map(|(_, replica)| replica.worker.clone()).collect();
    workers.sort();
    workers.dedup();
    workers.retain(is_cut_off);
    (!workers.is_empty()).then_some(Blocker::Unreachable { workers })
}
