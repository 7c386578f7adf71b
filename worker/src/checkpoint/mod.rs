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
    #[error("no complete checkpoint of step {step} in {url}")]
    NoSuchStep { step: u64, url: String },
    #[error("{url} was taken over by another run (lineage {theirs}, this run is {ours})")]
    OtherLineage { url: String, theirs: String, ours: String },
}

#[cfg(test)]
mod tests;
