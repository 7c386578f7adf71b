//! Which checkpoints are deleted, and what is left behind by writers that died.

use coord_io::storage::Storage;

use super::find::{DATA_SUFFIX, LINEAGE_FILE};
use super::{CheckpointError, Checkpoints, Manifest};

/// As the old program did.
pub const KEEP_NEWEST: usize = 5;

const POINTER: &str = "checkpoint";

/// Deletes old checkpoints of one run and keeps the pointer file true.
#[derive(Debug, Clone)]
pub struct Retention {
    pub prefix: String,
    pub lineage: String,
    /// The one that has the folder.
    pub run: String,
    pub keep: usize,
    /// Nothing at or after this step is deleted: the newest that the coordinator has recorded.
    pub recorded: Option<u64>,
    /// The writer's own: leftovers of generations before it may go, and those of its own before the newest checkpoint.
    pub generation: u64,
}

impl Retention {
    /// Call after a commit. Gives the steps that are kept, oldest first.
    pub async fn apply(&self, storage: &Storage) -> Result<Vec<u64>, CheckpointError> {
        let checkpoints = Checkpoints::new(storage.clone());
        // What another run has begun to write is not for this one to sweep.
        checkpoints.check_owner(&self.lineage, &self.run).await?;
        let mut own: Vec<(u64, String, Manifest)> = Vec::new();
        for (step, name) in checkpoints.names().await? {
            // What cannot be read is not ours to delete.
            if let Ok((manifest, _)) = checkpoints.manifest(&name).await
                && manifest.lineage == self.lineage
                && manifest.prefix == self.prefix
            {
                own.push((step, name, manifest));
            }
        }
        let mut kept: Vec<u64> = Vec::new();
        for (position, (step, name, manifest)) in own.iter().enumerate() {
            if position < self.keep || self.recorded.is_some_and(|recorded| *step >= recorded) {
                kept.push(*step);
                continue;
            }
            // The manifest goes first: what it named is then a leftover, never a checkpoint with holes.
            storage.delete(name).await?;
            for file in &manifest.files {
                storage.delete(&file.name).await?;
            }
        }
        kept.reverse();
        self.sweep(storage, &checkpoints, kept.last().copied()).await?;
        self.point(storage, &kept).await?;
        Ok(kept)
    }

    /// Removes data files that no manifest names: those of an older generation, and those of this one that a killed
    /// process of the same generation had begun. A generation has one writer, and that saves rising steps.
    async fn sweep(
        &self,
        storage: &Storage,
        checkpoints: &Checkpoints,
        newest: Option<u64>,
    ) -> Result<(), CheckpointError> {
        for object in [&format!("{}-", self.prefix), POINTER, LINEAGE_FILE] {
            storage.remove_unfinished(object).await?;
        }
        for path in checkpoints.uncommitted().await? {
            let left = parse_data_file(&self.prefix, &path).is_some_and(|(step, generation)| {
                generation < self.generation
                    || (generation == self.generation && newest.is_some_and(|newest| step < newest))
            });
            if left {
                storage.delete(&path).await?;
            }
        }
        Ok(())
    }

    /// The text pointer `checkpoint`, in the old program's form. A hint: nothing here reads it.
    async fn point(&self, storage: &Storage, kept: &[u64]) -> Result<(), CheckpointError> {
        let Some(newest) = kept.last() else {
            return Ok(());
        };
        let mut text = format!("model_checkpoint_path: \"{}-{newest}\"\n", self.prefix);
        for step in kept {
            text.push_str(&format!("all_model_checkpoint_paths: \"{}-{step}\"\n", self.prefix));
        }
        storage.put(POINTER, text).await?;
        Ok(())
    }
}

/// Step and generation in `translate.ckpt-200.g3.model.safetensors`.
fn parse_data_file(prefix: &str, name: &str) -> Option<(u64, u64)> {
    let rest = name.strip_prefix(prefix)?.strip_prefix('-')?.strip_suffix(DATA_SUFFIX)?;
    let mut parts = rest.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.strip_prefix('g')?.parse().ok()?))
}
