//! The JSON shapes of what the coordinator knows, as `--output json` prints them.

use coord_proto::v1;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::text;

/// `QUEUED`, `PREPARING`, ...: the name users know.
pub fn phase_name(phase: v1::Phase) -> &'static str {
    phase.as_str_name().trim_start_matches("PHASE_")
}

/// `cpu`, `cuda`.
pub fn device_name(device: v1::Device) -> String {
    device.as_str_name().trim_start_matches("DEVICE_").to_lowercase()
}

pub fn job(job: &v1::Job) -> Value {
    json!({
        "job": job.spec.as_ref().map(|spec| &spec.job),
        "state": phase_name(job.phase()),
        "reasons": job.reasons.iter().map(reason).collect::<Vec<_>>(),
        "created": time(job.created_millis),
        "started": time(job.started_millis),
        "ended": time(job.ended_millis),
        "ended_by": (!job.ended_by.is_empty()).then_some(&job.ended_by),
        "queue_position": (job.queue_position > 0).then_some(job.queue_position),
        "generation": job.generation,
        "restarts": job.restarts,
        "job_dir": job.job_dir,
        "spec": job.spec.as_ref().map(spec),
        "replicas": job.replicas.iter().map(replica).collect::<Vec<_>>(),
        "progress": job.progress.as_ref().map(progress),
        "checkpoints": job.checkpoints.iter().map(checkpoint).collect::<Vec<_>>(),
        "interruptions": job.interruptions.iter().map(interruption).collect::<Vec<_>>(),
        "failure": job.failure.as_ref().map(failure),
    })
}

/// A job of a list, without the fields that a list does not carry: empty ones would look like an answer.
pub fn listed_job(listed: &v1::Job) -> Value {
    let mut value = job(listed);
    for (parent, field) in [("", "checkpoints"), ("/spec", "args"), ("/failure", "tail")] {
        if let Some(Value::Object(fields)) = value.pointer_mut(parent) {
            fields.remove(field);
        }
    }
    value
}

pub fn spec(spec: &v1::JobSpec) -> Value {
    json!({
        "trainer": spec.trainer,
        "args": spec.args.iter().map(|argument| bytes(argument)).collect::<Vec<_>>(),
        "workers_min": spec.workers_min,
        "workers_max": spec.workers_max,
        "slots_per_worker": spec.slots_per_worker,
        "cpus": spec.cpus,
        "device": device_name(spec.device()),
        "micro_batches": spec.micro_batches,
        "labels": spec.labels.iter().collect::<std::collections::BTreeMap<_, _>>(),
        "priority": spec.priority,
        "max_running_seconds": spec.max_running_seconds,
        "max_restarts": spec.max_restarts,
        "fresh": spec.fresh,
    })
}

pub fn reason(reason: &v1::Reason) -> Value {
    json!({ "code": reason.code, "text": reason.text, "time": time(reason.at_millis) })
}

pub fn failure(failure: &v1::Failure) -> Value {
    json!({
        "cause": failure.cause,
        "replica": failure.replica,
        "generation": failure.generation,
        "exit_code": failure.exit_code,
        "signal": failure.signal,
        "text": failure.text,
        "tail": failure.tail,
    })
}

fn replica(replica: &v1::Replica) -> Value {
    json!({
        "rank": replica.rank,
        "name": replica.name,
        "worker": replica.worker,
        "worker_name": replica.worker_name,
        "generation": replica.generation,
        "state": replica.state,
        "samples": replica.samples,
        "outcome": (!replica.outcome.is_empty()).then_some(&replica.outcome),
        "consequence": replica.consequence,
    })
}

/// Of the newest step; nothing before the first one, or where only the step is known.
pub fn loss(progress: &v1::Progress) -> Option<f64> {
    (progress.step > 0 && progress.at_millis > 0).then_some(progress.loss)
}

pub fn progress(progress: &v1::Progress) -> Value {
    let eta = text::eta_millis(progress.step, progress.steps, progress.seconds_per_step);
    json!({
        "step": progress.step,
        "steps": (progress.steps > 0).then_some(progress.steps),
        "loss": loss(progress),
        "learning_rate": progress.learning_rate,
        "tokens_per_second": progress.tokens_per_second,
        "seconds_per_step": progress.seconds_per_step,
        "steps_per_epoch": (progress.steps_per_epoch > 0).then_some(progress.steps_per_epoch),
        "checkpoint_seconds": progress.checkpoint_seconds,
        "stage": (!progress.stage.is_empty()).then_some(&progress.stage),
        "samples_by_rank": progress.samples_by_rank,
        "eta_seconds": eta.map(|millis| millis as f64 / 1000.0),
        "time": time(progress.at_millis),
    })
}

pub fn checkpoint(checkpoint: &v1::CheckpointRecord) -> Value {
    json!({
        "step": checkpoint.step,
        "generation": checkpoint.generation,
        "manifest_url": checkpoint.manifest_url,
        "manifest_digest": checkpoint.manifest_digest,
        "state_digest": checkpoint.state_digest,
        "time": time(checkpoint.at_millis),
    })
}

pub fn interruption(interruption: &v1::Interruption) -> Value {
    json!({
        "time": time(interruption.at_millis),
        "generation": interruption.generation,
        "reason": interruption.reason,
        "step_before": interruption.step_before,
        "step_after": interruption.over.then_some(interruption.step_after),
        "pause_seconds": interruption.over.then_some(interruption.pause_millis as f64 / 1000.0),
    })
}

pub fn worker(worker: &v1::Worker) -> Value {
    let replica = |key: &v1::ReplicaKey| json!({ "job": key.job, "generation": key.generation, "rank": key.rank });
    json!({
        "worker": worker.worker,
        "name": worker.name,
        "host": worker.host,
        "state": worker.state,
        "slots": worker.slots,
        "slots_free": worker.slots_free,
        "device": device_name(worker.device()),
        "numeric_class": worker.numeric_class,
        "version": worker.version,
        "last_seen": time(worker.last_seen_millis),
        "replicas": worker.replicas.iter().map(replica).collect::<Vec<_>>(),
    })
}

pub fn members(answer: &v1::ListMembersResponse) -> Value {
    let member = |member: &v1::Member| {
        json!({
            "node": member.node,
            "address": member.address,
            "voter": member.voter,
            "leader": member.node == answer.leader,
            "state": member.state,
            "last_heard_seconds": member.last_heard_millis.map(|millis| millis as f64 / 1000.0),
        })
    };
    json!({
        "members": answer.members.iter().map(member).collect::<Vec<_>>(),
        "answered_by": answer.node,
        "leader": (answer.leader > 0).then_some(answer.leader),
        "term": answer.term,
        "applied": answer.applied,
    })
}

pub fn log_line(line: &v1::LogLine) -> Value {
    json!({
        "severity": line.severity,
        "time": time(line.at_millis),
        "task": line.task,
        "attempt": line.attempt,
        "message": line.text,
    })
}

/// RFC 3339 in UTC; null for 0, which stands for "not yet".
pub fn time(millis: u64) -> Option<String> {
    let millis = i64::try_from(millis).ok().filter(|&millis| millis > 0)?;
    Some(Timestamp::from_millisecond(millis).ok()?.to_string())
}

/// Text where it is text, `{"hex": ...}` where it is not: an argument may hold any bytes and none may be lost.
fn bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_job_has_nulls_for_what_is_not_known_yet() {
        let waiting = v1::Job {
            spec: Some(v1::JobSpec { job: "dialogs".into(), ..v1::JobSpec::default() }),
            phase: v1::Phase::Queued.into(),
            created_millis: 1_482_641_364_250,
            queue_position: 3,
            ..v1::Job::default()
        };
        let value = job(&waiting);
        assert_eq!(value["job"], "dialogs");
        assert_eq!(value["state"], "QUEUED");
        assert_eq!(value["created"], "2016-12-25T04:49:24.25Z");
        assert_eq!(value["queue_position"], 3);
        for unknown in ["started", "ended", "ended_by", "progress", "failure"] {
            assert_eq!(value[unknown], Value::Null, "{unknown}");
        }
    }

    #[test]
    fn a_listed_job_has_no_field_that_a_list_does_not_carry() {
        let value = listed_job(&v1::Job {
            spec: Some(v1::JobSpec::default()),
            failure: Some(v1::Failure::default()),
            ..v1::Job::default()
        });
        assert_eq!(value.pointer("/checkpoints").or(value.pointer("/spec/args")), None);
        assert_eq!((value.pointer("/failure/tail"), value.pointer("/failure/text")), (None, Some(&json!(""))));
    }

    #[test]
    fn no_byte_of_an_argument_is_lost() {
        assert_eq!(bytes("--name=ü".as_bytes()), json!("--name=ü"));
        assert_eq!(bytes(b"\xff\x00"), json!({ "hex": "ff00" }));
    }
}
