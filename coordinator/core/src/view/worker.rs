//! Workers as operators see them.

use coord_common::convert::{device_to_wire, key_to_wire};
use coord_common::{Millis, WorkerId};
use coord_proto::v1;

use crate::liveness::Liveness;
use crate::state::ClusterState;
use crate::worker::Worker;

pub fn worker(state: &ClusterState, seen: &Liveness, now: Millis, id: &WorkerId) -> Option<v1::Worker> {
    state.worker(id).map(|worker| message(state, seen, now, id, worker))
}

/// All of them, by id.
pub fn workers(state: &ClusterState, seen: &Liveness, now: Millis) -> Vec<v1::Worker> {
    state.workers().map(|(id, worker)| message(state, seen, now, id, worker)).collect()
}

fn message(state: &ClusterState, seen: &Liveness, now: Millis, id: &WorkerId, worker: &Worker) -> v1::Worker {
    let registration = &worker.registration;
    let slots_free = if worker.takes_replicas() { seen.free_slots(state, id, worker) } else { 0 };
    v1::Worker {
        worker: id.to_string(),
        name: registration.name.clone(),
        host: registration.host.clone(),
        slots: registration.slots,
        slots_free,
        device: device_to_wire(registration.device).into(),
        numeric_class: registration.numeric_class.to_string(),
        version: registration.version.clone(),
        state: condition(seen, now, id, worker).to_owned(),
        last_seen_millis: seen.last_heartbeat(id, worker).unwrap_or(worker.since).0,
        replicas: state.held_by(id).map(|(key, _)| key_to_wire(key)).collect(),
    }
}

fn condition(seen: &Liveness, now: Millis, id: &WorkerId, worker: &Worker) -> &'static str {
    if worker.lost && worker.leaving {
        "left"
    } else if worker.lost {
        "lost"
    } else if worker.leaving {
        "leaving"
    } else if seen.is_reachable(id, worker, now) {
        "connected"
    } else {
        "unreachable"
    }
}
