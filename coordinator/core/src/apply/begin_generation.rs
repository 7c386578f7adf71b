//! All ranks are ready: what they restore is decided once, and they meet.

use coord_common::{CheckpointRecord, Generation, JobId, Millis};

use super::place_job::class_of;
use crate::effect::Effect;
use crate::job::{Severity, Stage};
use crate::orders;
use crate::reply::{Rejection, Reply};
use crate::state::ClusterState;

pub fn apply(
    state: &mut ClusterState,
    at: Millis,
    id: &JobId,
    generation: Generation,
    restore: Option<CheckpointRecord>,
    out: &mut Vec<Effect>,
) -> Reply {
    let Some(mut job) = state.take(id) else { return Reply::Rejected(Rejection::no_such_job(id)) };
    let all_ready = job.replicas.iter().all(|replica| replica.stage == Stage::Ready);
    if job.generation != generation || !job.is_wanted() || job.begun || !all_ready {
        let text = format!("job {id} is {} in generation {}, which cannot begin now", job.phase, job.generation);
        state.put(job);
        return Reply::Rejected(Rejection::new("stale_plan", text));
    }
    job.begun = true;
    job.numeric_class = job.numeric_class.take().or_else(|| class_of(state, &job));
    if let Some(record) = &restore {
        job.say(at, Severity::Info, format!("Restoring the checkpoint of step {}.", record.step));
    }
    job.restore = restore;
    for (rank, replica) in job.ranks() {
        out.push(Effect::Send { worker: replica.worker.clone(), order: orders::rendezvous(&job, rank) });
    }
    out.push(Effect::JobChanged { job: id.clone() });
    state.put(job);
    Reply::Done
}
