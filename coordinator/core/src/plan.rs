//! What the leader proposes next: decisions, never changes. Asking twice before the first answer is applied is harmless,
//! because `apply` refuses what no longer holds.

use coord_common::{Millis, Phase, WorkerId};

use crate::entry::{CancelBy, Command};
use crate::job::{Job, Stage};
use crate::liveness::Liveness;
use crate::schedule;
use crate::state::ClusterState;

/// A worker whose stream broke keeps replicas that have computed nothing yet for so long only: the job loses less by
/// beginning elsewhere. Agents are back with a leader, also with a new one, within a second or two.
const PREPARING_LEASE: Millis = Millis(5_000);

/// `now` is of the same clock as the times in `seen` and the stamps of this leader's entries.
pub fn plan(state: &ClusterState, seen: &Liveness, now: Millis) -> Vec<Command> {
    let mut commands = Vec::new();
    lose_silent_workers(state, seen, now, &mut commands);
    for place in state.active() {
        if let Some(job) = state.job(&place.job) {
            stop_overrunning(job, now, &mut commands);
            begin_when_ready(job, &mut commands);
        }
    }
    let placements = schedule::placements(state, seen, now);
    commands.extend(placements.into_iter().map(Command::PlaceJob));
    forget_oldest(state, seen, &mut commands);
    commands
}

/// A lease runs from the last heartbeat, but never from before this leader's election: whoever could not be heard
/// because there was no leader has lost nothing.
fn lose_silent_workers(state: &ClusterState, seen: &Liveness, now: Millis, commands: &mut Vec<Command>) {
    for (id, worker) in state.workers().filter(|(_, worker)| !worker.lost) {
        let silence = seen.silence(id, worker, now);
        let has_left = worker.leaving && !seen.is_connected(id, worker) && state.held_by(id).next().is_none();
        let is_cut_off = silence >= PREPARING_LEASE && !seen.is_connected(id, worker);
        let reason = if silence >= seen.policy.lease || (is_cut_off && all_its_jobs_prepare(state, id)) {
            format!("silent for {} s", silence.seconds_rounded_up())
        } else if has_left {
            "left".to_owned()
        } else {
            continue;
        };
        commands.push(Command::LoseWorker { worker: id.clone(), incarnation: worker.incarnation().clone(), reason });
    }
}

fn all_its_jobs_prepare(state: &ClusterState, id: &WorkerId) -> bool {
    let mut jobs = state.held_by(id).map(|(key, _)| state.job(&key.job)).peekable();
    jobs.peek().is_some() && jobs.all(|job| job.is_some_and(|job| job.is_wanted() && job.phase == Phase::Preparing))
}

fn stop_overrunning(job: &Job, now: Millis, commands: &mut Vec<Command>) {
    let runs = matches!(job.phase, Phase::Preparing | Phase::Running);
    let is_over = job.started.is_some_and(|started| now >= started + job.spec.max_running);
    if runs && is_over {
        commands.push(Command::CancelJob { job: job.spec.job.clone(), by: CancelBy::TimeLimit });
    }
}

fn begin_when_ready(job: &Job, commands: &mut Vec<Command>) {
    let all_ready = job.replicas.iter().all(|replica| replica.stage == Stage::Ready);
    if job.is_wanted() && !job.begun && all_ready {
        let restore = job.newest_checkpoint().cloned();
        commands.push(Command::BeginGeneration { job: job.spec.job.clone(), generation: job.generation, restore });
    }
}

fn forget_oldest(state: &ClusterState, seen: &Liveness, commands: &mut Vec<Command>) {
    let finished = state.finished();
    let surplus = finished.len().saturating_sub(seen.policy.keep_jobs);
    if surplus > 0 {
        commands.push(Command::ForgetJobs { jobs: finished.take(surplus).cloned().collect() });
    }
}
