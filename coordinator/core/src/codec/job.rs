//! One job of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use coord_common::convert::{
    ConvertError, checkpoint_from_wire, checkpoint_to_wire, phase_from_wire, phase_to_wire, report_from_wire,
    report_to_wire, required, spec_from_wire, spec_to_wire,
};
use coord_common::rank::rank_of_name;
use coord_common::{Generation, Millis, NumericClass, Phase, Rank, RequestId, Step, WorkerId, replica_name};
use coord_proto::log::v1 as log;
use coord_proto::v1;

use super::{CodecError, known};
use crate::entry::CancelBy;
use crate::job::{
    End, EndCause, Ending, Event, FAILURE_CAUSES, Failure, Interruption, Job, Replica, Resumption, SetAside, Severity,
    Stage,
};

const LAUNCHING: u32 = 1;
const READY: u32 = 2;
const RUNNING: u32 = 3;
const ENDED: u32 = 4;

pub(super) fn job_to_log(job: &Job) -> log::JobState {
    log::JobState {
        request_id: job.request.to_string(),
        spec: Some(spec_to_wire(&job.spec)),
        submission: job.submission,
        phase: phase_to_wire(job.phase).into(),
        created_millis: job.created.0,
        started_millis: stored(job.started),
        ended_millis: stored(job.ended),
        generation: job.generation.0,
        replicas: job.ranks().map(replica_to_log).collect(),
        secret: job.secret.clone(),
        begun: job.begun,
        restore: job.restore.as_ref().map(checkpoint_to_wire),
        checkpoints: job.checkpoints.iter().map(checkpoint_to_wire).collect(),
        interruptions: job.interruptions.iter().map(interruption_to_wire).collect(),
        restarts: job.restarts,
        failure: job.failure.as_ref().map(failure_to_wire),
        cancel_by: job.cancelled_by.map_or(String::new(), |by| by.as_str().to_owned()),
        events: job.events.iter().map(event_to_log).collect(),
        job_dir: job.job_dir.clone(),
        running: job.phase == Phase::Running,
        ending: job.ending.as_ref().map(ending_to_log),
        best_step: job.best_step.0,
        best_step_before: job.best_step_before.0,
        idle_generations: job.idle_generations,
        set_aside: job.set_aside.iter().map(set_aside_to_log).collect(),
        retry_millis: job.retry_at.0,
        numeric_class: job.numeric_class.as_ref().map_or(String::new(), NumericClass::to_string),
    }
}

pub(super) fn job_from_log(wire: log::JobState) -> Result<Job, CodecError> {
    let spec = spec_from_wire(&required("spec", wire.spec)?)?;
    let by = match wire.cancel_by.as_str() {
        "" => None,
        name => Some(known("cancelled by", name, CancelBy::from_name(name))?),
    };
    Ok(Job {
        spec: Arc::new(spec),
        request: RequestId::parse(&wire.request_id).map_err(ConvertError::from)?,
        submission: wire.submission,
        job_dir: wire.job_dir,
        phase: phase_from_wire(wire.phase)?,
        created: Millis(wire.created_millis),
        started: loaded(wire.started_millis),
        ended: loaded(wire.ended_millis),
        generation: Generation(wire.generation),
        replicas: wire.replicas.into_iter().map(replica_from_log).collect::<Result<_, _>>()?,
        secret: wire.secret,
        begun: wire.begun,
        restore: wire.restore.as_ref().map(checkpoint_from_wire),
        ending: wire.ending.map(ending_from_log).transpose()?,
        checkpoints: wire.checkpoints.iter().map(checkpoint_from_wire).collect(),
        interruptions: wire.interruptions.into_iter().map(interruption_from_wire).collect(),
        restarts: wire.restarts,
        failure: wire.failure.map(failure_from_wire).transpose()?,
        cancelled_by: by,
        events: wire.events.into_iter().map(event_from_log).collect::<Result<_, _>>()?,
        best_step: Step(wire.best_step),
        best_step_before: Step(wire.best_step_before),
        idle_generations: wire.idle_generations,
        set_aside: wire.set_aside.into_iter().map(set_aside_from_log).collect::<Result<BTreeMap<_, _>, _>>()?,
        retry_at: Millis(wire.retry_millis),
        numeric_class: (!wire.numeric_class.is_empty()).then(|| NumericClass::new(&wire.numeric_class)),
    })
}

/// Times that may be missing are stored one higher, so that zero can mean none.
fn stored(time: Option<Millis>) -> u64 {
    time.map_or(0, |time| time.0 + 1)
}

fn loaded(stored: u64) -> Option<Millis> {
    stored.checked_sub(1).map(Millis)
}

fn replica_to_log((rank, replica): (Rank, &Replica)) -> log::ReplicaState {
    let mut wire = log::ReplicaState {
        rank: rank.0,
        worker: replica.worker.to_string(),
        endpoint: replica.endpoint.clone(),
        ..log::ReplicaState::default()
    };
    match &replica.stage {
        Stage::Launching => wire.stage = LAUNCHING,
        Stage::Ready => wire.stage = READY,
        Stage::Running => wire.stage = RUNNING,
        Stage::Ended { end, order } => {
            wire.stage = ENDED;
            wire.exit_order = *order;
            match end {
                End::Exited(report) => wire.exited = Some(report_to_wire(report)),
                End::Lost { reason } => (wire.lost, wire.reason) = (true, reason.clone()),
                End::Refused { reason } => wire.reason = reason.clone(),
            }
        }
    }
    wire
}

fn replica_from_log(wire: log::ReplicaState) -> Result<Replica, CodecError> {
    let stage = match (wire.stage, wire.exited, wire.lost) {
        (LAUNCHING, ..) => Stage::Launching,
        (READY, ..) => Stage::Ready,
        (RUNNING, ..) => Stage::Running,
        (ENDED, Some(report), _) => {
            Stage::Ended { end: End::Exited(report_from_wire(&report)), order: wire.exit_order }
        }
        (ENDED, None, true) => Stage::Ended { end: End::Lost { reason: wire.reason }, order: wire.exit_order },
        (ENDED, None, false) => Stage::Ended { end: End::Refused { reason: wire.reason }, order: wire.exit_order },
        (other, ..) => return Err(CodecError::Unknown { field: "stage", got: other.to_string() }),
    };
    let worker = WorkerId::parse(&wire.worker).map_err(ConvertError::from)?;
    Ok(Replica { worker, stage, endpoint: wire.endpoint })
}

fn ending_to_log(ending: &Ending) -> log::Ending {
    log::Ending {
        cause: ending.cause.as_str().to_owned(),
        reason: ending.reason.clone(),
        first: ending.first.map(|rank| rank.0),
    }
}

fn ending_from_log(wire: log::Ending) -> Result<Ending, CodecError> {
    let cause = known("ending", &wire.cause, EndCause::from_name(&wire.cause))?;
    Ok(Ending { cause, reason: wire.reason, first: wire.first.map(Rank) })
}

pub(crate) fn interruption_to_wire(interruption: &Interruption) -> v1::Interruption {
    v1::Interruption {
        at_millis: interruption.at.0,
        generation: interruption.generation.0,
        reason: interruption.reason.clone(),
        step_before: interruption.step_before.0,
        step_after: interruption.over.map_or(0, |resumption| resumption.step.0),
        pause_millis: interruption.over.map_or(0, |resumption| resumption.pause.0),
        over: interruption.over.is_some(),
    }
}

fn interruption_from_wire(wire: v1::Interruption) -> Interruption {
    let resumption = Resumption { step: Step(wire.step_after), pause: Millis(wire.pause_millis) };
    Interruption {
        at: Millis(wire.at_millis),
        generation: Generation(wire.generation),
        reason: wire.reason,
        step_before: Step(wire.step_before),
        over: wire.over.then_some(resumption),
    }
}

pub(crate) fn failure_to_wire(failure: &Failure) -> v1::Failure {
    v1::Failure {
        cause: failure.cause.to_owned(),
        replica: failure.replica.map_or(String::new(), replica_name),
        generation: failure.generation.0,
        exit_code: failure.exit_code,
        signal: failure.signal,
        text: failure.text.clone(),
        tail: failure.tail.clone(),
    }
}

fn failure_from_wire(wire: v1::Failure) -> Result<Failure, CodecError> {
    let cause = FAILURE_CAUSES.into_iter().find(|cause| *cause == wire.cause);
    Ok(Failure {
        cause: known("failure cause", &wire.cause, cause)?,
        replica: rank_of_name(&wire.replica),
        generation: Generation(wire.generation),
        exit_code: wire.exit_code,
        signal: wire.signal,
        text: wire.text,
        tail: wire.tail,
    })
}

fn event_to_log(event: &Event) -> log::Event {
    log::Event { at_millis: event.at.0, severity: event.severity.as_str().to_owned(), text: event.text.clone() }
}

fn event_from_log(wire: log::Event) -> Result<Event, CodecError> {
    let severity = known("severity", &wire.severity, Severity::from_name(&wire.severity))?;
    Ok(Event { at: Millis(wire.at_millis), severity, text: wire.text })
}

fn set_aside_to_log((worker, aside): (&WorkerId, &SetAside)) -> log::SetAside {
    log::SetAside {
        worker: worker.to_string(),
        refusals: aside.refusals,
        until_millis: aside.until.0,
        reason: aside.reason.clone(),
    }
}

fn set_aside_from_log(wire: log::SetAside) -> Result<(WorkerId, SetAside), CodecError> {
    let worker = WorkerId::parse(&wire.worker).map_err(ConvertError::from)?;
    Ok((worker, SetAside { refusals: wire.refusals, until: Millis(wire.until_millis), reason: wire.reason }))
}
