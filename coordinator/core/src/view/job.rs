//! One job with everything that is known of it.

use coord_common::convert::{checkpoint_to_wire, phase_to_wire, progress_to_wire, spec_to_wire};
use coord_common::exit_rule::{Cause, Judgement, judge};
use coord_common::{JobId, Millis, Rank, Step, replica_name};
use coord_proto::v1;

use crate::blocker::Blocker;
use crate::codec::{failure_to_wire, interruption_to_wire};
use crate::explain::explain;
use crate::job::{End, Job, Replica, Stage};
use crate::liveness::Liveness;
use crate::schedule;
use crate::stall;
use crate::state::ClusterState;

pub fn job(state: &ClusterState, seen: &Liveness, now: Millis, id: &JobId) -> Option<v1::Job> {
    let job = state.job(id)?;
    let position = schedule::positions(state, [job]).remove(id);
    Some(message(state, seen, now, job, explain(state, seen, now, id), position))
}

pub(super) fn message(
    state: &ClusterState,
    seen: &Liveness,
    now: Millis,
    job: &Job,
    blockers: Vec<Blocker>,
    position: Option<u32>,
) -> v1::Job {
    let at_millis = state.now().0;
    let reason =
        |blocker: Blocker| v1::Reason { code: blocker.code().to_owned(), text: blocker.to_string(), at_millis };
    v1::Job {
        spec: Some(spec_to_wire(&job.spec)),
        phase: phase_to_wire(job.phase).into(),
        reasons: blockers.into_iter().map(reason).collect(),
        created_millis: job.created.0,
        started_millis: job.started.map_or(0, |time: Millis| time.0),
        ended_millis: job.ended.map_or(0, |time: Millis| time.0),
        generation: job.generation.0,
        replicas: job.ranks().map(|(rank, replica)| replica_message(state, seen, job, rank, replica)).collect(),
        progress: progress(seen, now, job),
        checkpoints: job.checkpoints.iter().map(checkpoint_to_wire).collect(),
        interruptions: job.interruptions.iter().map(interruption_to_wire).collect(),
        failure: job.failure.as_ref().map(failure_to_wire),
        restarts: job.restarts,
        queue_position: position.unwrap_or(0),
        job_dir: job.job_dir.clone(),
        ended_by: job.cancelled_by.map_or(String::new(), |by| by.as_str().to_owned()),
    }
}

/// The gauge. What a job had reached when it ended is a fact and outlives the leader that heard the gauge.
fn progress(seen: &Liveness, now: Millis, job: &Job) -> Option<v1::Progress> {
    if let Some(gauge) = seen.progress.get(&job.spec.job) {
        let mut gauge = progress_to_wire(gauge);
        if job.phase.is_final() {
            gauge.stage.clear();
        }
        if stall::of(seen, now, job).is_some() {
            // How fast it went before says nothing of now.
            (gauge.tokens_per_second, gauge.seconds_per_step) = (0.0, 0.0);
        }
        return Some(gauge).filter(|gauge| gauge.step > 0 || !gauge.stage.is_empty());
    }
    let ended = job.ended.filter(|_| job.best_step > Step(0))?;
    let mut known = v1::Progress { step: job.best_step.0, ..v1::Progress::default() };
    if let Some(Stage::Ended { end: End::Exited(report), .. }) = job.replicas.first().map(|master| &master.stage) {
        known.steps = report.steps.map_or(0, |steps| steps.0);
        // Of another step than the last one only where the master replica fell behind its job's best.
        if let Some(loss) = report.loss.filter(|_| report.last_step == job.best_step) {
            (known.loss, known.at_millis) = (loss, ended.0);
        }
    }
    Some(known)
}

fn replica_message(state: &ClusterState, seen: &Liveness, job: &Job, rank: Rank, replica: &Replica) -> v1::Replica {
    let told = seen.progress.get(&job.spec.job).and_then(|progress| progress.samples_by_rank.get(rank.index()));
    let samples = match &replica.stage {
        Stage::Ended { end: End::Exited(report), .. } => report.samples,
        Stage::Ended { .. } | Stage::Launching | Stage::Ready | Stage::Running => told.copied().unwrap_or(0),
    };
    v1::Replica {
        rank: rank.0,
        name: replica_name(rank),
        worker: replica.worker.to_string(),
        worker_name: state.worker(&replica.worker).map_or(String::new(), |worker| worker.registration.name.clone()),
        generation: job.generation.0,
        state: replica.stage.as_str().to_owned(),
        samples,
        outcome: replica.outcome(),
        consequence: is_consequence(job, rank, replica),
    }
}

/// It ended badly, and another replica's end explains that.
fn is_consequence(job: &Job, rank: Rank, replica: &Replica) -> bool {
    let Stage::Ended { end, .. } = &replica.stage else { return false };
    if let End::Exited(report) = end {
        match report.exit.cause {
            Cause::PeerLost => return true,
            _ if judge(&report.exit) == Judgement::Success => return false,
            _ => {}
        }
    }
    let first = job.ending.as_ref().and_then(|ending| ending.first);
    first.is_some_and(|first| first != rank)
}
