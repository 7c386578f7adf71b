//! Entries of the log as bytes.

use coord_common::convert::{
    ConvertError, checkpoint_from_wire, checkpoint_to_wire, fact_from_wire, fact_to_wire, registration_from_wire,
    registration_to_wire, required, spec_from_wire, spec_to_wire,
};
use coord_common::{Generation, Incarnation, JobId, Millis, RequestId, WorkerId};
use coord_proto::log::v1 as log;
use log::entry::Command as Wire;
use prost::Message;

use super::{CodecError, VERSION, check_version, known};
use crate::entry::{CancelBy, Command, Entry, PlaceJob, SubmitJob};

pub fn encode_entry(entry: &Entry) -> Vec<u8> {
    let command = Some(command_to_wire(&entry.command));
    log::Entry { version: VERSION, at_millis: entry.at.0, proposal: entry.proposal, command }.encode_to_vec()
}

pub fn decode_entry(bytes: &[u8]) -> Result<Entry, CodecError> {
    let wire = log::Entry::decode(bytes).map_err(|source| CodecError::Bytes { what: "entry", source })?;
    check_version("entry", wire.version)?;
    let command = command_from_wire(wire.command.ok_or(CodecError::UnknownCommand)?)?;
    Ok(Entry { at: Millis(wire.at_millis), proposal: wire.proposal, command })
}

fn command_to_wire(command: &Command) -> Wire {
    match command {
        Command::SubmitJob(submit) => Wire::SubmitJob(log::SubmitJob {
            request_id: submit.request.to_string(),
            spec: Some(spec_to_wire(&submit.spec)),
            storage: submit.storage.clone(),
        }),
        Command::CancelJob { job, by } => {
            Wire::CancelJob(log::CancelJob { job: job.to_string(), by: by.as_str().to_owned() })
        }
        Command::DeleteJob { job } => Wire::DeleteJob(log::DeleteJob { job: job.to_string() }),
        Command::ForgetJobs { jobs } => {
            Wire::ForgetJobs(log::ForgetJobs { jobs: jobs.iter().map(JobId::to_string).collect() })
        }
        Command::RegisterWorker(registration) => {
            Wire::RegisterWorker(log::RegisterWorker { register: Some(registration_to_wire(registration)) })
        }
        Command::DrainWorker { worker, incarnation } => {
            Wire::DrainWorker(log::DrainWorker { worker: worker.to_string(), incarnation: incarnation.to_string() })
        }
        Command::LoseWorker { worker, incarnation, reason } => Wire::LoseWorker(log::LoseWorker {
            worker: worker.to_string(),
            incarnation: incarnation.to_string(),
            reason: reason.clone(),
        }),
        Command::PlaceJob(place) => Wire::PlaceJob(place_to_wire(place)),
        Command::BeginGeneration { job, generation, restore } => Wire::BeginGeneration(log::BeginGeneration {
            job: job.to_string(),
            generation: generation.0,
            restore: restore.as_ref().map(checkpoint_to_wire),
        }),
        Command::ReplicaFact { worker, incarnation, fact } => Wire::ReplicaFact(log::ReplicaFact {
            worker: worker.to_string(),
            incarnation: incarnation.to_string(),
            fact: Some(fact_to_wire(fact)),
        }),
    }
}

fn place_to_wire(place: &PlaceJob) -> log::PlaceJob {
    let assignment = |(rank, worker): (u32, &WorkerId)| log::Assignment { rank, worker: worker.to_string() };
    log::PlaceJob {
        job: place.job.to_string(),
        generation: place.generation.0,
        assignments: (0..).zip(&place.workers).map(assignment).collect(),
        secret: place.secret.clone(),
    }
}

fn command_from_wire(wire: Wire) -> Result<Command, CodecError> {
    Ok(match wire {
        Wire::SubmitJob(submit) => Command::SubmitJob(SubmitJob {
            request: RequestId::parse(&submit.request_id).map_err(ConvertError::from)?,
            spec: Box::new(spec_from_wire(&required("spec", submit.spec)?)?),
            storage: submit.storage,
        }),
        Wire::CancelJob(cancel) => {
            let by = known("cancelled by", &cancel.by, CancelBy::from_name(&cancel.by))?;
            Command::CancelJob { job: job_id(&cancel.job)?, by }
        }
        Wire::DeleteJob(delete) => Command::DeleteJob { job: job_id(&delete.job)? },
        Wire::ForgetJobs(forget) => {
            Command::ForgetJobs { jobs: forget.jobs.iter().map(|id| job_id(id)).collect::<Result<_, _>>()? }
        }
        Wire::RegisterWorker(register) => {
            Command::RegisterWorker(registration_from_wire(&required("register", register.register)?)?)
        }
        Wire::DrainWorker(drain) => {
            Command::DrainWorker { worker: worker_id(&drain.worker)?, incarnation: incarnation(&drain.incarnation)? }
        }
        Wire::LoseWorker(lose) => Command::LoseWorker {
            worker: worker_id(&lose.worker)?,
            incarnation: incarnation(&lose.incarnation)?,
            reason: lose.reason,
        },
        Wire::PlaceJob(place) => Command::PlaceJob(place_from_wire(place)?),
        Wire::BeginGeneration(begin) => Command::BeginGeneration {
            job: job_id(&begin.job)?,
            generation: Generation(begin.generation),
            restore: begin.restore.as_ref().map(checkpoint_from_wire),
        },
        Wire::ReplicaFact(fact) => Command::ReplicaFact {
            worker: worker_id(&fact.worker)?,
            incarnation: incarnation(&fact.incarnation)?,
            fact: fact_from_wire(&required("fact", fact.fact)?)?,
        },
    })
}

fn place_from_wire(wire: log::PlaceJob) -> Result<PlaceJob, CodecError> {
    let in_order = (0..).zip(&wire.assignments).all(|(rank, assignment)| assignment.rank == rank);
    if !in_order {
        return Err(CodecError::Unknown { field: "assignments", got: "ranks out of order".to_owned() });
    }
    Ok(PlaceJob {
        job: job_id(&wire.job)?,
        generation: Generation(wire.generation),
        workers: wire.assignments.iter().map(|one| worker_id(&one.worker)).collect::<Result<_, _>>()?,
        secret: wire.secret,
    })
}

fn job_id(text: &str) -> Result<JobId, ConvertError> {
    Ok(JobId::parse(text)?)
}

fn worker_id(text: &str) -> Result<WorkerId, ConvertError> {
    Ok(WorkerId::parse(text)?)
}

fn incarnation(text: &str) -> Result<Incarnation, ConvertError> {
    Ok(Incarnation::parse(text)?)
}
