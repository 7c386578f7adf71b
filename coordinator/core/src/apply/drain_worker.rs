//! A worker leaves politely: it takes no more replicas, and the jobs it works for go on elsewhere.

use std::collections::BTreeSet;

use coord_common::{Incarnation, JobId, Millis, Rank, WorkerId};

use crate::effect::Effect;
use crate::job::EndCause;
use crate::reply::Reply;
use crate::state::ClusterState;

pub fn apply(
    state: &mut ClusterState,
    at: Millis,
    id: &WorkerId,
    incarnation: &Incarnation,
    out: &mut Vec<Effect>,
) -> Reply {
    let known = state.worker_mut(id).filter(|worker| worker.incarnation() == incarnation);
    let Some(worker) = known else { return Reply::Ignored { why: "no such incarnation" } };
    if worker.leaving {
        return Reply::Ignored { why: "already leaving" };
    }
    worker.leaving = true;
    worker.since = at;
    let name = state.worker_name(id);
    let jobs: BTreeSet<JobId> = state.held_by(id).map(|(key, _)| key.job.clone()).collect();
    for job_id in jobs {
        let Some(mut job) = state.take(&job_id) else { continue };
        let first: Option<Rank> = job.live().find(|(_, replica)| replica.worker == *id).map(|(rank, _)| rank);
        job.end_generation(at, EndCause::Preempted, format!("worker {name} is leaving"), first, out);
        state.put(job);
        out.push(Effect::JobChanged { job: job_id });
    }
    Reply::Done
}
