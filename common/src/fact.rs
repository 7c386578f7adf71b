//! Facts that an agent reports about its replicas: numbered, sent again until acknowledged, applied once.

use crate::checkpoint::CheckpointRecord;
use crate::exit_rule::Exit;
use crate::ids::Step;
use crate::rank::ReplicaKey;

#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// From 1, without gaps, within one incarnation of the agent.
    pub sequence: u64,
    pub key: ReplicaKey,
    pub body: FactBody,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FactBody {
    /// It listens on `endpoint` and waits for the others.
    Ready {
        endpoint: String,
    },
    /// It is about to run `step`, its first of this generation.
    Running {
        step: Step,
    },
    Exited(ExitReport),
    Checkpoint(CheckpointRecord),
    /// The agent cannot start it: the agent's fault, not the job's.
    Refused {
        reason: String,
    },
}

/// The end of a replica with all that is worth keeping of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExitReport {
    pub exit: Exit,
    /// One line.
    pub message: String,
    /// The last 8 KiB of output.
    pub tail: String,
    pub last_step: Step,
    /// Where it would have ended; nothing when the job has no limit of steps.
    pub steps: Option<Step>,
    /// Of its newest gauge.
    pub loss: Option<f64>,
    /// Samples that this replica computed in this generation.
    pub samples: u64,
}
