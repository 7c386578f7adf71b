//! The fact that a checkpoint is complete in storage.

use crate::ids::{Generation, Step};
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRecord {
    pub step: Step,
    pub generation: Generation,
    pub manifest_url: String,
    /// SHA-256 of the manifest's bytes, hexadecimal.
    pub manifest_digest: String,
    /// What `coord checkpoints digest` prints.
    pub state_digest: String,
    pub at: Millis,
}

impl CheckpointRecord {
    /// Newest is most trained; among equal steps the later generation wrote last.
    pub fn age_order(&self) -> (Step, Generation) {
        (self.step, self.generation)
    }
}
