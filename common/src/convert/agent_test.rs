//! Tests that what agents and the leader say survives the wire.

use super::*;
use crate::checkpoint::CheckpointRecord;
use crate::exit_rule::Cause;
use crate::ids::{Generation, JobId};
use crate::job::{JobSettings, JobSpec};
use crate::rank::{Rank, ReplicaKey};
use crate::resources::Device;

fn key() -> ReplicaKey {
    ReplicaKey { job: JobId::parse("chat").expect("valid"), generation: Generation(2), rank: Rank(1) }
}

fn record() -> CheckpointRecord {
    CheckpointRecord {
        step: Step(200),
        generation: Generation(1),
        manifest_url: "file:///m".into(),
        manifest_digest: "aa".into(),
        state_digest: "bb".into(),
        at: Millis(7),
    }
}

#[test]
fn registrations_survive_the_wire_and_need_slots_and_a_device() {
    let registration = Registration {
        worker: WorkerId::parse("w1").expect("valid"),
        name: "host:/work".into(),
        incarnation: Incarnation::parse("i1").expect("valid"),
        slots: 4,
        device: Device::Cuda,
        numeric_class: NumericClass::new("abc"),
        version: "0.1.0".into(),
        host: "10.0.0.1".into(),
        alive: vec![key()],
        facts_acknowledged: 9,
    };
    let wire = registration_to_wire(&registration);
    assert_eq!(registration_from_wire(&wire), Ok(registration));
    let no_slots = v1::Register { slots: 0, ..wire.clone() };
    let error = registration_from_wire(&no_slots).expect_err("no slots");
    assert_eq!(error.to_string(), "slots must be between 1 and 1024, got 0");
    assert!(registration_from_wire(&v1::Register { device: 0, ..wire }).is_err());
}

#[test]
fn heartbeats_survive_the_wire() {
    let heartbeat = Heartbeat { alive: vec![key()], silent: vec![(key(), Millis(4_000))] };
    let wire = heartbeat_to_wire(&heartbeat);
    assert_eq!(heartbeat_from_wire(&wire), Ok(heartbeat));
    let keyless = v1::Heartbeat { silent: vec![v1::SilentReplica::default()], ..wire };
    assert_eq!(heartbeat_from_wire(&keyless), Err(ConvertError::Missing { field: "key" }));
}

#[test]
fn every_fact_survives_the_wire() {
    let exit = Exit { code: Some(7), signal: None, cause: Cause::UserError };
    let report = ExitReport {
        exit,
        message: "m".into(),
        tail: "t".into(),
        last_step: Step(3),
        steps: Some(Step(9)),
        loss: Some(2.5),
        samples: 64,
    };
    let bodies = [
        FactBody::Ready { endpoint: "h:1".into() },
        FactBody::Running { step: Step(4) },
        FactBody::Exited(report),
        FactBody::Checkpoint(record()),
        FactBody::Refused { reason: "read-only work directory".into() },
    ];
    for (sequence, body) in (1..).zip(bodies) {
        let fact = Fact { sequence, key: key(), body };
        assert_eq!(fact_from_wire(&fact_to_wire(&fact)), Ok(fact));
    }
    let empty = v1::Fact { sequence: 1, key: Some(key_to_wire(&key())), fact: None };
    assert_eq!(fact_from_wire(&empty).expect_err("no body").to_string(), "message lacks its fact");
}

#[test]
fn every_order_survives_the_wire() {
    let settings = JobSettings::new(JobId::parse("chat").expect("valid"), "translate");
    let orders = [
        Order::Launch(Launch {
            key: key(),
            spec: Arc::new(JobSpec::new(settings).expect("valid")),
            world_size: 2,
            job_dir: "file:///jobs/chat".into(),
            secret: "s".into(),
            run: "r1".into(),
        }),
        Order::Rendezvous(Rendezvous { key: key(), endpoints: vec!["a:1".into()], restore: Some(record()) }),
        Order::Stop(Stop { key: key(), reason: StopReason::TimeLimit, grace: Millis::from_seconds(10) }),
    ];
    for order in orders {
        assert_eq!(order_from_wire(&order_to_wire(&order)), Ok(Some(order)));
    }
}
