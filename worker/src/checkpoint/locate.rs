//! A job dir or a train dir: finds the folder that holds the checkpoints.

use coord_io::storage::Storage;

use super::{CheckpointError, Checkpoints};

/// Looks in the folder itself and in `train` below it.
pub async fn locate(url: &str) -> Result<Checkpoints, CheckpointError> {
    let folder = Storage::open(url)?;
    for storage in [folder.clone(), folder.folder("train")?] {
        let checkpoints = Checkpoints::new(storage);
        if !checkpoints.names().await?.is_empty() {
            return Ok(checkpoints);
        }
    }
    Err(CheckpointError::None { url: folder.url().to_owned() })
}
