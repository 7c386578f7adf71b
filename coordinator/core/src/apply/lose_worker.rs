//! A worker was silent for its whole lease: its replicas count as gone, and it must register to be used again.

use std::collections::BTreeSet;

use coord_common::{Incarnation, Millis, ReplicaKey, WorkerId};

use crate::effect::Effect;
use crate::job::End;
use crate::limits::LOST_WORKERS_KEPT;
use crate::reply::Reply;
use crate::state::ClusterState;

pub fn apply(
    state: &mut ClusterState,
    at: Millis,
    id: &WorkerId,
    incarnation: &Incarnation,
    reason: &str,
    out: &mut Vec<Effect>,
) -> Reply {
    let known = state.worker_mut(id).filter(|worker| worker.incarnation() == incarnation);
    let Some(worker) = known else { return Reply::Ignored { why: "no such incarnation" } };
    if worker.lost {
        return Reply::Ignored { why: "already lost" };
    }
    worker.lost = true;
    worker.since = at;
    lose_replicas(state, at, id, &BTreeSet::new(), reason, out);
    drop_oldest_lost(state);
    Reply::Done
}

/// All live replicas on the worker but the kept ones count as gone.
pub(super) fn lose_replicas(
    state: &mut ClusterState,
    at: Millis,
    id: &WorkerId,
    kept: &BTreeSet<ReplicaKey>,
    reason: &str,
    out: &mut Vec<Effect>,
) {
    let name = state.worker_name(id);
    let gone: Vec<ReplicaKey> =
        state.held_by(id).map(|(key, _)| key.clone()).filter(|key| !kept.contains(key)).collect();
    for key in gone {
        let Some(mut job) = state.take(&key.job) else { continue };
        job.replica_ended(at, key.rank, &name, End::Lost { reason: reason.to_owned() }, out);
        state.put(job);
        let changed = Effect::JobChanged { job: key.job };
        if out.last() != Some(&changed) {
            out.push(changed);
        }
    }
}

fn drop_oldest_lost(state: &mut ClusterState) {
    let mut lost: Vec<(Millis, WorkerId)> =
        state.workers().filter(|(_, worker)| worker.lost).map(|(id, worker)| (worker.since, id.clone())).collect();
    lost.sort();
    let surplus = lost.len().saturating_sub(LOST_WORKERS_KEPT);
    for (_, id) in lost.into_iter().take(surplus) {
        state.remove_worker(&id);
    }
}
