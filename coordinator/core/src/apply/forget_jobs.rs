//! The oldest finished jobs leave the state, so that it stays small; their ids stay taken.

use coord_common::JobId;

use crate::effect::Effect;
use crate::reply::Reply;
use crate::state::ClusterState;

pub fn apply(state: &mut ClusterState, ids: &[JobId], out: &mut Vec<Effect>) -> Reply {
    for id in ids {
        let is_over = state.job(id).is_some_and(|job| job.phase.is_final() && !job.has_live_replicas());
        if is_over {
            state.forget(id);
            out.push(Effect::JobChanged { job: id.clone() });
        }
    }
    Reply::Done
}
