//! Every reason why a job is not running, for people.

use coord_common::{JobId, Phase, Rank, WorkerId};

use crate::blocker::Blocker;
use crate::job::{Job, Replica, Stage};
use crate::liveness::Liveness;
use crate::placement::Verdict;
use crate::schedule::{self, Verdicts};
use crate::state::ClusterState;

/// Empty for jobs that run undisturbed, that are over, or that do not exist. Never empty for a waiting job.
pub fn explain(state: &ClusterState, seen: &Liveness, id: &JobId) -> Vec<Blocker> {
    let Some(job) = state.job(id) else { return Vec::new() };
    if !job.awaits_placement() {
        return explain_placed(state, seen, job);
    }
    let verdicts = Verdicts::new(state, seen, state.now());
    let position = schedule::positions(state, [job]).remove(id);
    explain_with(state, seen, job, &verdicts, position)
}

/// The same for several jobs of one state, with the work that they share done once.
pub fn explain_with(
    state: &ClusterState,
    seen: &Liveness,
    job: &Job,
    verdicts: &Verdicts,
    position: Option<u32>,
) -> Vec<Blocker> {
    let Some(verdict) = verdicts.on(state, job, position) else { return explain_placed(state, seen, job) };
    let mut blockers = Vec::new();
    if let Some(ending) = &job.ending {
        blockers.push(Blocker::Interrupted { reason: ending.reason.clone() });
    }
    match verdict {
        Verdict::Place(placement) => {
            blockers.push(Blocker::BeingPlaced { replicas: placement.workers.len() as u32 });
        }
        Verdict::Wait(reasons) => blockers.extend(reasons),
    }
    blockers.extend(unreachable(state, seen, job));
    blockers
}

fn explain_placed(state: &ClusterState, seen: &Liveness, job: &Job) -> Vec<Blocker> {
    of_replicas(job).into_iter().chain(unreachable(state, seen, job)).collect()
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
    // People know workers by name.
    let name =
        |id: &WorkerId| state.worker(id).map_or_else(|| id.to_string(), |worker| worker.registration.name.clone());
    (!workers.is_empty()).then(|| Blocker::Unreachable { workers: workers.iter().map(name).collect() })
}
