//! Keys, causes, checkpoints and progress of replicas on the wire.

use coord_proto::v1;

use super::ConvertError;
use crate::checkpoint::CheckpointRecord;
use crate::exit_rule::Cause;
use crate::ids::{Generation, JobId, Step};
use crate::progress::Progress;
use crate::rank::{Rank, ReplicaKey};
use crate::time::Millis;

pub fn key_from_wire(wire: &v1::ReplicaKey) -> Result<ReplicaKey, ConvertError> {
    Ok(ReplicaKey { job: JobId::parse(&wire.job)?, generation: Generation(wire.generation), rank: Rank(wire.rank) })
}

pub fn key_to_wire(key: &ReplicaKey) -> v1::ReplicaKey {
    v1::ReplicaKey { job: key.job.to_string(), generation: key.generation.0, rank: key.rank.0 }
}

/// A cause that a newer agent may say and we do not know counts as unsaid: the exit status decides.
pub fn cause_from_wire(text: &str) -> Cause {
    Cause::ALL.into_iter().find(|cause| cause.as_str() == text).unwrap_or(Cause::Unsaid)
}

pub fn checkpoint_from_wire(wire: &v1::CheckpointRecord) -> CheckpointRecord {
    CheckpointRecord {
        step: Step(wire.step),
        generation: Generation(wire.generation),
        manifest_url: wire.manifest_url.clone(),
        manifest_digest: wire.manifest_digest.clone(),
        state_digest: wire.state_digest.clone(),
        at: Millis(wire.at_millis),
    }
}

pub fn checkpoint_to_wire(record: &CheckpointRecord) -> v1::CheckpointRecord {
    v1::CheckpointRecord {
        step: record.step.0,
        generation: record.generation.0,
        manifest_url: record.manifest_url.clone(),
        manifest_digest: record.manifest_digest.clone(),
        state_digest: record.state_digest.clone(),
        at_millis: record.at.0,
    }
}

pub fn progress_from_wire(wire: &v1::Progress) -> Progress {
    Progress {
        step: Step(wire.step),
        steps: (wire.steps != 0).then_some(Step(wire.steps)),
        loss: wire.loss,
        learning_rate: wire.learning_rate,
        tokens_per_second: wire.tokens_per_second,
        seconds_per_step: wire.seconds_per_step,
        steps_per_epoch: wire.steps_per_epoch,
        checkpoint_seconds: wire.checkpoint_seconds,
        stage: wire.stage.clone(),
        samples_by_rank: wire.samples_by_rank.clone(),
        at: Millis(wire.at_millis),
    }
}

pub fn progress_to_wire(progress: &Progress) -> v1::Progress {
    v1::Progress {
        step: progress.step.0,
        steps: progress.steps.map_or(0, |steps| steps.0),
        loss: progress.loss,
        learning_rate: progress.learning_rate,
        tokens_per_second: progress.tokens_per_second,
        seconds_per_step: progress.seconds_per_step,
        steps_per_epoch: progress.steps_per_epoch,
        checkpoint_seconds: progress.checkpoint_seconds,
        stage: progress.stage.clone(),
        samples_by_rank: progress.samples_by_rank.clone(),
        at_millis: progress.at.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_read_back_and_an_unknown_one_is_left_to_the_status() {
        for cause in Cause::ALL {
            assert_eq!(cause_from_wire(cause.as_str()), cause);
        }
        assert_eq!(cause_from_wire("meteor"), Cause::Unsaid);
    }

    #[test]
    fn checkpoints_and_progress_survive_the_wire() {
        let record = CheckpointRecord {
            step: Step(200),
            generation: Generation(2),
            manifest_url: "s3://b/jobs/chat/train/translate.ckpt-200.json".into(),
            manifest_digest: "aa".into(),
            state_digest: "bb".into(),
            at: Millis(5),
        };
        assert_eq!(checkpoint_from_wire(&checkpoint_to_wire(&record)), record);
        let progress = Progress { step: Step(3), steps: Some(Step(9)), loss: 1.5, ..Progress::default() };
        assert_eq!(progress_from_wire(&progress_to_wire(&progress)), progress);
    }
}
