//! What agents report of their replicas: applied once each, in their order, and only for the present generation.

use coord_common::{
    CheckpointRecord, ExitReport, Fact, FactBody, Incarnation, Millis, Phase, Rank, ReplicaKey, Step, WorkerId,
};

use crate::effect::Effect;
use crate::job::{End, Job, Resumption, Severity, Stage};
use crate::limits::{CHECKPOINTS_KEPT, MESSAGE_BYTES_MAX, TAIL_BYTES_MAX, first_bytes, last_bytes};
use crate::reply::{Rejection, Reply};
use crate::state::ClusterState;

pub fn apply(
    state: &mut ClusterState,
    at: Millis,
    worker_id: WorkerId,
    incarnation: Incarnation,
    fact: Fact,
    out: &mut Vec<Effect>,
) -> Reply {
    let sequence = fact.sequence;
    let acknowledge = Effect::Acknowledge { worker: worker_id.clone(), incarnation: incarnation.clone(), sequence };
    let known = state.worker_mut(&worker_id).filter(|worker| *worker.incarnation() == incarnation);
    let Some(worker) = known else {
        out.push(acknowledge);
        return Reply::Ignored { why: "no such incarnation" };
    };
    if sequence <= worker.facts_applied {
        out.push(acknowledge);
        return Reply::Ignored { why: "applied before" };
    }
    if sequence != worker.facts_applied + 1 {
        // Taking it would acknowledge the ones before it, which are not in the log.
        let expected = worker.facts_applied + 1;
        let text = format!("fact {sequence} of worker {worker_id} came before fact {expected}");
        return Reply::Rejected(Rejection::new("fact_out_of_order", text));
    }
    worker.facts_applied = sequence;
    out.push(acknowledge);
    take_in(state, at, &worker_id, &fact.key, fact.body, out)
}

fn take_in(
    state: &mut ClusterState,
    at: Millis,
    worker: &WorkerId,
    key: &ReplicaKey,
    body: FactBody,
    out: &mut Vec<Effect>,
) -> Reply {
    let name = state.worker_name(worker);
    let Some(mut job) = state.take(&key.job) else { return Reply::Ignored { why: "no such job" } };
    let told = match replica_of(&job, worker, key) {
        Err(why) => Err(why),
        Ok(rank) => tell(&mut job, at, rank, &name, body, out),
    };
    state.put(job);
    match told {
        Ok(()) => {
            out.push(Effect::JobChanged { job: key.job.clone() });
            Reply::Done
        }
        Err(why) => Reply::Ignored { why },
    }
}

/// Fencing: the word of an older generation, or of a worker that was not given this rank, counts for nothing.
fn replica_of(job: &Job, worker: &WorkerId, key: &ReplicaKey) -> Result<Rank, &'static str> {
    if key.generation != job.generation {
        return Err("another generation");
    }
    match job.replicas.get(key.rank.index()) {
        Some(replica) if replica.worker == *worker => Ok(key.rank),
        _ => Err("not this worker's replica"),
    }
}

fn tell(
    job: &mut Job,
    at: Millis,
    rank: Rank,
    worker: &str,
    body: FactBody,
    out: &mut Vec<Effect>,
) -> Result<(), &'static str> {
    if let FactBody::Checkpoint(record) = body {
        return record_checkpoint(job, record);
    }
    if !job.replicas[rank.index()].is_live() {
        return Err("the replica has ended");
    }
    match body {
        FactBody::Ready { endpoint } => ready(job, rank, endpoint),
        FactBody::Running { step } => running(job, at, rank, step),
        FactBody::Exited(report) => job.replica_ended(at, rank, worker, End::Exited(shortened(report)), out),
        FactBody::Refused { reason } => {
            let reason = first_bytes(&reason, MESSAGE_BYTES_MAX).to_owned();
            job.replica_ended(at, rank, worker, End::Refused { reason }, out);
        }
        FactBody::Checkpoint(_) => {}
    }
    Ok(())
}

fn ready(job: &mut Job, rank: Rank, endpoint: String) {
    let replica = &mut job.replicas[rank.index()];
    if replica.stage == Stage::Launching {
        replica.stage = Stage::Ready;
        job.set_aside.remove(&replica.worker);
        replica.endpoint = first_bytes(&endpoint, MESSAGE_BYTES_MAX).to_owned();
    }
}

/// `Running` means that all ranks are up: the time limit counts from the first time that is so.
fn running(job: &mut Job, at: Millis, rank: Rank, step: Step) {
    job.heard_of_step(step);
    if job.begun {
        job.replicas[rank.index()].stage = Stage::Running;
    }
    let all_up = job.replicas.iter().all(|replica| matches!(replica.stage, Stage::Running | Stage::Ended { .. }));
    if job.phase != Phase::Preparing || !job.is_wanted() || !all_up {
        return;
    }
    job.phase = Phase::Running;
    job.started.get_or_insert(at);
    for interruption in job.interruptions.iter_mut().filter(|earlier| earlier.over.is_none()) {
        interruption.over = Some(Resumption { step, pause: at.since(interruption.at) });
    }
    job.say(at, Severity::Info, format!("Job is running from step {step}."));
}

fn record_checkpoint(job: &mut Job, record: CheckpointRecord) -> Result<(), &'static str> {
    if record.generation != job.generation {
        return Err("another generation");
    }
    job.heard_of_step(record.step);
    let is_same = |other: &CheckpointRecord| other.age_order() == record.age_order();
    if job.checkpoints.iter().any(is_same) {
        return Err("recorded before");
    }
    job.checkpoints.push(record);
    job.checkpoints.sort_by_key(CheckpointRecord::age_order);
    let surplus = job.checkpoints.len().saturating_sub(CHECKPOINTS_KEPT);
    job.checkpoints.drain(..surplus);
    Ok(())
}

fn shortened(report: ExitReport) -> ExitReport {
    ExitReport {
        message: first_bytes(&report.message, MESSAGE_BYTES_MAX).to_owned(),
        tail: last_bytes(&report.tail, TAIL_BYTES_MAX).to_owned(),
        ..report
    }
}
