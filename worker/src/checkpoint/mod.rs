//! Checkpoints: tensors first, the manifest last; complete when the manifest exists and verifies.

mod digest;
mod find;
mod locate;
mod manifest;
mod retention;
mod save;
mod tensors;

pub use digest::state_digest;
pub use find::{Checkpoints, Complete, Lineage, Rejected, Search};
pub use locate::locate;
pub use manifest::{FileEntry, Manifest, manifest_name, parse_manifest_name};
pub use retention::{KEEP_NEWEST, Retention};
pub use save::{Saved, Snapshot, save};
pub use tensors::{Tensor, TensorData, decode, encode};

use coord_io::storage::StorageError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("checkpoint {url}: {why}")]
    Invalid { url: String, why: String },
    #[error("no checkpoint in {url}")]
    None { url: String },
    #[error("no complete checkpoint in {url}: {}", .rejected.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    AllRejected { url: String, rejected: Vec<Rejected> },
    #[error("no checkpoint of step {step} in {url}; it has those of {}", steps(there))]
    NoSuchStep { step: u64, url: String, there: Vec<u64> },
    #[error("{url} was taken over by another run, that of job {job}")]
    TakenOver { url: String, job: String },
}

/// `step 100`, `steps 100 and 200`; of many the newest.
fn steps(newest_first: &[u64]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = newest_first.iter().take(SHOWN).rev().map(u64::to_string).collect();
    match (shown.pop(), shown.is_empty()) {
        (Some(last), true) => format!("step {last}"),
        (Some(last), false) if newest_first.len() > SHOWN => {
            format!("{} steps, the newest {} and {last}", newest_first.len(), shown.join(", "))
        }
        (Some(last), false) => format!("steps {} and {last}", shown.join(", ")),
        (None, _) => "no step".to_owned(),
    }
}

#[cfg(test)]
mod tests;
