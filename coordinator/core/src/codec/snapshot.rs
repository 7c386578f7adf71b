//! The whole state as bytes. Indices are left out: they are derived again.

use std::collections::BTreeSet;

use coord_common::convert::{ConvertError, registration_from_wire, registration_to_wire, required};
use coord_common::{JobId, Millis};
use coord_proto::log::v1 as log;
use prost::Message;

use super::job::{job_from_log, job_to_log};
use super::{CodecError, VERSION, check_version};
use crate::state::ClusterState;
use crate::worker::Worker;

pub fn encode_snapshot(state: &ClusterState) -> Vec<u8> {
    let snapshot = log::Snapshot {
        version: VERSION,
        now_millis: state.now().0,
        jobs: state.jobs().map(job_to_log).collect(),
        workers: state.workers().map(|(_, worker)| worker_to_log(worker)).collect(),
        taken_ids: state.taken_ids().map(JobId::to_string).collect(),
        submissions: state.submissions(),
        begun_millis: state.begun().0,
    };
    snapshot.encode_to_vec()
}

pub fn decode_snapshot(bytes: &[u8]) -> Result<ClusterState, CodecError> {
    let wire = log::Snapshot::decode(bytes).map_err(|source| CodecError::Bytes { what: "snapshot", source })?;
    check_version("snapshot", wire.version)?;
    let jobs = wire.jobs.into_iter().map(job_from_log).collect::<Result<Vec<_>, _>>()?;
    let workers = wire.workers.into_iter().map(worker_from_log).collect::<Result<Vec<_>, _>>()?;
    let taken = wire.taken_ids.iter().map(|id| JobId::parse(id)).collect::<Result<BTreeSet<_>, _>>();
    let taken = taken.map_err(ConvertError::from)?;
    let (begun, now) = (Millis(wire.begun_millis), Millis(wire.now_millis));
    Ok(ClusterState::restore(begun, now, wire.submissions, jobs, workers, taken))
}

fn worker_to_log(worker: &Worker) -> log::WorkerState {
    log::WorkerState {
        register: Some(registration_to_wire(&worker.registration)),
        lost: worker.lost,
        leaving: worker.leaving,
        facts_applied: worker.facts_applied,
        since_millis: worker.since.0,
    }
}

fn worker_from_log(wire: log::WorkerState) -> Result<Worker, CodecError> {
    Ok(Worker {
        registration: registration_from_wire(&required("register", wire.register)?)?,
        lost: wire.lost,
        leaving: wire.leaving,
        facts_applied: wire.facts_applied,
        since: Millis(wire.since_millis),
    })
}
