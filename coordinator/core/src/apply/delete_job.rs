//! A finished job leaves the state; its id stays taken.

use coord_common::JobId;

use crate::effect::Effect;
use crate::reply::{Rejection, Reply};
use crate::state::ClusterState;

pub fn apply(state: &mut ClusterState, id: &JobId, out: &mut Vec<Effect>) -> Reply {
    let Some(job) = state.job(id) else { return Reply::Rejected(Rejection::no_such_job(id)) };
    if !job.phase.is_final() {
        let refusal =
            Rejection::new("job_active", format!("job {id} is {}, only finished jobs are deleted", job.phase));
        return Reply::Rejected(refusal.with_hint(format!("use `coord cancel {id}` first")));
    }
    if job.has_live_replicas() {
        let refusal = Rejection::new("job_active", format!("replicas of job {id} are still ending"));
        return Reply::Rejected(refusal.with_hint("try again in some seconds"));
    }
    state.forget(id);
    out.push(Effect::JobChanged { job: id.clone() });
    Reply::Done
}
