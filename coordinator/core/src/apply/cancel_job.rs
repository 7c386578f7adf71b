//! A cancel is a fact once applied: the job ends, whatever its replicas still do.

use coord_common::{JobId, Millis, Phase};

use crate::effect::Effect;
use crate::entry::CancelBy;
use crate::reply::{Rejection, Reply};
use crate::state::ClusterState;

pub fn apply(state: &mut ClusterState, at: Millis, id: &JobId, by: CancelBy, out: &mut Vec<Effect>) -> Reply {
    let Some(mut job) = state.take(id) else { return Reply::Rejected(Rejection::no_such_job(id)) };
    let already_ended = job.phase.is_final();
    if !already_ended && job.phase != Phase::Cancelling {
        job.cancel(at, by, out);
        out.push(Effect::JobChanged { job: id.clone() });
    }
    state.put(job);
    Reply::Cancelled { job: id.clone(), already_ended }
}
