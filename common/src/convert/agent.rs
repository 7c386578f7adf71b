//! Registrations, facts and orders on the wire between an agent and the leader.

use std::sync::Arc;

use coord_proto::v1;

use super::{
    ConvertError, cause_from_wire, checkpoint_from_wire, checkpoint_to_wire, device_from_wire, device_to_wire,
    key_from_wire, key_to_wire, required, spec_from_wire, spec_to_wire,
};
use crate::exit_rule::Exit;
use crate::fact::{ExitReport, Fact, FactBody};
use crate::heartbeat::Heartbeat;
use crate::ids::{Incarnation, Step, WorkerId};
use crate::job::SpecError;
use crate::order::{Launch, Order, Rendezvous, Stop, StopReason};
use crate::rank::ReplicaKey;
use crate::registration::Registration;
use crate::resources::{NumericClass, SLOTS_MAX};
use crate::time::Millis;

pub fn registration_from_wire(wire: &v1::Register) -> Result<Registration, ConvertError> {
    if wire.slots < 1 || wire.slots > SLOTS_MAX {
        let (max, got) = (SLOTS_MAX.into(), wire.slots.into());
        return Err(SpecError::Range { field: "slots", min: 1, max, got }.into());
    }
    Ok(Registration {
        worker: WorkerId::parse(&wire.worker)?,
        name: wire.name.clone(),
        incarnation: Incarnation::parse(&wire.incarnation)?,
        slots: wire.slots,
        device: device_from_wire(wire.device)?,
        numeric_class: NumericClass::new(&wire.numeric_class),
        version: wire.version.clone(),
        host: wire.host.clone(),
        alive: wire.alive.iter().map(key_from_wire).collect::<Result<_, _>>()?,
        facts_acknowledged: wire.facts_acknowledged,
    })
}

pub fn registration_to_wire(registration: &Registration) -> v1::Register {
    v1::Register {
        worker: registration.worker.to_string(),
        name: registration.name.clone(),
        incarnation: registration.incarnation.to_string(),
        slots: registration.slots,
        device: device_to_wire(registration.device).into(),
        numeric_class: registration.numeric_class.to_string(),
        version: registration.version.clone(),
        host: registration.host.clone(),
        alive: registration.alive.iter().map(key_to_wire).collect(),
        facts_acknowledged: registration.facts_acknowledged,
    }
}

pub fn heartbeat_from_wire(wire: &v1::Heartbeat) -> Result<Heartbeat, ConvertError> {
    let silent = |wire: &v1::SilentReplica| {
        Ok((key_from_wire(required("key", wire.key.as_ref())?)?, Millis(wire.silence_millis)))
    };
    Ok(Heartbeat {
        alive: wire.alive.iter().map(key_from_wire).collect::<Result<_, _>>()?,
        silent: wire.silent.iter().map(silent).collect::<Result<_, ConvertError>>()?,
    })
}

pub fn heartbeat_to_wire(heartbeat: &Heartbeat) -> v1::Heartbeat {
    let silent = |(key, silence): &(ReplicaKey, Millis)| v1::SilentReplica {
        key: Some(key_to_wire(key)),
        silence_millis: silence.0,
    };
    v1::Heartbeat {
        alive: heartbeat.alive.iter().map(key_to_wire).collect(),
        silent: heartbeat.silent.iter().map(silent).collect(),
    }
}

pub fn fact_from_wire(wire: &v1::Fact) -> Result<Fact, ConvertError> {
    use v1::fact::Fact as Wire;
    let body = match required("fact", wire.fact.as_ref())? {
        Wire::Ready(ready) => FactBody::Ready { endpoint: ready.endpoint.clone() },
        Wire::Running(running) => FactBody::Running { step: Step(running.step) },
        Wire::Exited(exited) => FactBody::Exited(report_from_wire(exited)),
        Wire::Checkpoint(record) => FactBody::Checkpoint(checkpoint_from_wire(record)),
        Wire::Refused(refused) => FactBody::Refused { reason: refused.reason.clone() },
    };
    Ok(Fact { sequence: wire.sequence, key: key_from_wire(required("key", wire.key.as_ref())?)?, body })
}

pub fn fact_to_wire(fact: &Fact) -> v1::Fact {
    use v1::fact::Fact as Wire;
    let body = match &fact.body {
        FactBody::Ready { endpoint } => Wire::Ready(v1::ReplicaReady { endpoint: endpoint.clone() }),
        FactBody::Running { step } => Wire::Running(v1::ReplicaRunning { step: step.0, ..Default::default() }),
        FactBody::Exited(report) => Wire::Exited(report_to_wire(report)),
        FactBody::Checkpoint(record) => Wire::Checkpoint(checkpoint_to_wire(record)),
        FactBody::Refused { reason } => Wire::Refused(v1::LaunchRefused { reason: reason.clone() }),
    };
    v1::Fact { sequence: fact.sequence, key: Some(key_to_wire(&fact.key)), fact: Some(body) }
}

pub fn report_from_wire(wire: &v1::ReplicaExited) -> ExitReport {
    ExitReport {
        exit: Exit { code: wire.code, signal: wire.signal, cause: cause_from_wire(&wire.cause) },
        message: wire.message.clone(),
        tail: wire.tail.clone(),
        last_step: Step(wire.last_step),
        steps: (wire.steps > 0).then_some(Step(wire.steps)),
        loss: wire.loss,
        samples: wire.samples,
    }
}

pub fn report_to_wire(report: &ExitReport) -> v1::ReplicaExited {
    v1::ReplicaExited {
        code: report.exit.code,
        signal: report.exit.signal,
        cause: report.exit.cause.as_str().to_owned(),
        message: report.message.clone(),
        tail: report.tail.clone(),
        last_step: report.last_step.0,
        steps: report.steps.map_or(0, |steps| steps.0),
        loss: report.loss,
        samples: report.samples,
    }
}

/// Nothing for the messages of a leader that are not orders.
pub fn order_from_wire(wire: &v1::LeaderMessage) -> Result<Option<Order>, ConvertError> {
    use v1::leader_message::Message;
    let order = match required("message", wire.message.as_ref())? {
        Message::Launch(launch) => Order::Launch(Launch {
            key: key_from_wire(required("key", launch.key.as_ref())?)?,
            spec: Arc::new(spec_from_wire(required("spec", launch.spec.as_ref())?)?),
            world_size: launch.world_size,
            job_dir: launch.job_dir.clone(),
            secret: launch.secret.clone(),
            run: launch.run.clone(),
        }),
        Message::Rendezvous(rendezvous) => Order::Rendezvous(Rendezvous {
            key: key_from_wire(required("key", rendezvous.key.as_ref())?)?,
            endpoints: rendezvous.endpoints.clone(),
            restore: rendezvous.restore.as_ref().map(checkpoint_from_wire),
        }),
        Message::Stop(stop) => Order::Stop(Stop {
            key: key_from_wire(required("key", stop.key.as_ref())?)?,
            reason: stop_reason_from_wire(&stop.reason),
            grace: Millis::from_seconds(stop.grace_seconds.into()),
        }),
        Message::Registered(_) | Message::Heartbeat(_) | Message::Acknowledge(_) => return Ok(None),
        Message::ReadLog(_) | Message::Ask(_) => return Ok(None),
    };
    Ok(Some(order))
}

pub fn order_to_wire(order: &Order) -> v1::LeaderMessage {
    use v1::leader_message::Message;
    let message = match order {
        Order::Launch(launch) => Message::Launch(v1::Launch {
            key: Some(key_to_wire(&launch.key)),
            spec: Some(spec_to_wire(&launch.spec)),
            world_size: launch.world_size,
            job_dir: launch.job_dir.clone(),
            secret: launch.secret.clone(),
            run: launch.run.clone(),
        }),
        Order::Rendezvous(rendezvous) => Message::Rendezvous(v1::Rendezvous {
            key: Some(key_to_wire(&rendezvous.key)),
            endpoints: rendezvous.endpoints.clone(),
            restore: rendezvous.restore.as_ref().map(checkpoint_to_wire),
            recorded_only: rendezvous.restore.is_some(),
        }),
        Order::Stop(stop) => Message::Stop(v1::Stop {
            key: Some(key_to_wire(&stop.key)),
            reason: stop.reason.as_str().to_owned(),
            grace_seconds: u32::try_from(stop.grace.seconds_rounded_up()).unwrap_or(u32::MAX),
        }),
    };
    v1::LeaderMessage { message: Some(message) }
}

/// A reason that only a newer leader knows still means stop.
fn stop_reason_from_wire(text: &str) -> StopReason {
    StopReason::ALL.into_iter().find(|reason| reason.as_str() == text).unwrap_or(StopReason::Unknown)
}

#[cfg(test)]
#[path = "agent_test.rs"]
mod tests;
