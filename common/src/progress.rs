//! How far a job has come: a gauge, lossy by design, never logged.

use crate::ids::Step;
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    pub step: Step,
    /// Nothing when the job has no limit of steps.
    pub steps: Option<Step>,
    pub loss: f64,
    pub learning_rate: f64,
    pub tokens_per_second: f64,
    pub seconds_per_step: f64,
    pub steps_per_epoch: u64,
    /// How long the newest save took.
    pub checkpoint_seconds: f64,
    /// What a preparing replica is doing, for people; empty once it runs.
    pub stage: String,
    pub samples_by_rank: Vec<u64>,
    pub at: Millis,
}
