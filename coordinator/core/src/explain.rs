//! Every reason why a job is not running, and what a cancelled one left behind, for people.

use std::collections::BTreeSet;

use coord_common::{JobId, Millis, Phase, Rank, Step, WorkerId};

use crate::blocker::{Blocker, Stop};
use crate::job::{End, Job, Replica, Stage};
use crate::liveness::Liveness;
use crate::placement::Verdict;
use crate::schedule::{self, Verdicts};
use crate::stall;
use crate::state::ClusterState;

const SIGKILL: i32 = 9;

/// `now` is of the clock of `seen`. Empty for jobs that run undisturbed, that ended by themselves, or that do not exist. Never empty for a waiting or a
/// cancelled job.
pub fn explain(state: &ClusterState, seen: &Liveness, now: Millis, id: &JobId) -> Vec<Blocker> {
    let Some(job) = state.job(id) else { return Vec::new() };
    if !job.awaits_placement() {
        return explain_placed(state, seen, now, job);
    }
    let verdicts = Verdicts::new(state, seen, now);
    let position = schedule::positions(state, [job]).remove(id);
    explain_with(state, seen, now, job, &verdicts, position)
}

/// The same for several jobs of one state, with the work that they share done once.
pub fn explain_with(
    state: &ClusterState,
    seen: &Liveness,
    now: Millis,
    job: &Job,
    verdicts: &Verdicts,
    position: Option<u32>,
) -> Vec<Blocker> {
    let Some(verdict) = verdicts.on(state, job, position) else { return explain_placed(state, seen, now, job) };
    let mut blockers = Vec::new();
    if let Some(ending) = &job.ending {
        blockers.push(Blocker::Interrupted { reason: ending.reason.clone() });
    }
    match verdict {
        Verdict::Place(placement) => {
            blockers.push(Blocker::BeingPlaced { replicas: placement.workers.len() as u32 });
        }
        Verdict::Wait(reasons) => {
            let holders = reasons.iter().any(waits_for_others).then(|| held_by(state, seen, now, job)).flatten();
            blockers.extend(reasons.into_iter().chain(holders));
        }
    }
    blockers.extend(unreachable(state, seen, now, job));
    blockers
}

fn explain_placed(state: &ClusterState, seen: &Liveness, now: Millis, job: &Job) -> Vec<Blocker> {
    let waits = cancelled(job).into_iter().chain(of_replicas(job));
    let stands_still = stall::of(seen, now, job).into_iter().chain(stall::silent(state, seen, now, job));
    waits.chain(stands_still).chain(unreachable(state, seen, now, job)).collect()
}

fn waits_for_others(reason: &Blocker) -> bool {
    matches!(reason, Blocker::FreeSlots { .. } | Blocker::NumericClass { .. })
}

/// The other jobs on the workers that could take this one: those of the state, and those that only an agent still holds.
fn held_by(state: &ClusterState, seen: &Liveness, now: Millis, job: &Job) -> Option<Blocker> {
    let usable = state.workers().filter(|(id, worker)| {
        let registration = &worker.registration;
        let class_fits = job.numeric_class.as_ref().is_none_or(|class| *class == registration.numeric_class);
        let device_fits = registration.device == job.spec.device;
        class_fits && device_fits && worker.takes_replicas() && seen.is_reachable(id, worker, now)
    });
    let holders = usable.flat_map(|(id, worker)| {
        let known = state.held_by(id).map(|(key, _)| &key.job);
        known.chain(seen.alive(id, worker).map(|key| &key.job))
    });
    let jobs: BTreeSet<&JobId> = holders.filter(|holder| **holder != job.spec.job).collect();
    (!jobs.is_empty()).then(|| Blocker::HeldBy { jobs: jobs.into_iter().cloned().collect() })
}

/// What the end of a cancelled job means for its training, as far as facts tell.
fn cancelled(job: &Job) -> Option<Blocker> {
    let by = job.cancelled_by.filter(|_| job.phase == Phase::Cancelled)?;
    let how = match job.replicas.get(Rank::MASTER.index()).map(|master| &master.stage) {
        None => Stop::NeverBegun,
        // A generation that had ended before the cancel was not stopped by it.
        _ if job.ending.is_some() => Stop::Ended,
        Some(Stage::Ended { end: End::Exited(report), .. }) if report.exit.signal == Some(SIGKILL) => {
            Stop::Killed { grace: job.spec.grace }
        }
        Some(Stage::Ended { end: End::Lost { .. }, .. }) => Stop::Lost,
        Some(_) => Stop::Ended,
    };
    let newest_checkpoint = job.newest_checkpoint().map(|record| record.step);
    let steps_lost = job.best_step > newest_checkpoint.unwrap_or(Step(0)) || matches!(how, Stop::Killed { .. });
    Some(Blocker::Cancelled { by, how, newest_checkpoint, steps_lost })
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

fn unreachable(state: &ClusterState, seen: &Liveness, now: Millis, job: &Job) -> Option<Blocker> {
    let is_cut_off = |id: &WorkerId| state.worker(id).is_none_or(|worker| !seen.is_reachable(id, worker, now));
    let mut workers: Vec<WorkerId> = job.live().map(|(_, replica)| replica.worker.clone()).collect();
    workers.sort();
    workers.dedup();
    workers.retain(is_cut_off);
    let name = |id: &WorkerId| state.worker_name(id);
    (!workers.is_empty()).then(|| Blocker::Unreachable { workers: workers.iter().map(name).collect() })
}
