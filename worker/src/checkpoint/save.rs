//! Writes a checkpoint: data files, manifest only if absent, then the pointer.

use coord_io::storage::{Created, Storage};

use super::digest::sha256;
use super::find::Checkpoints;
use super::manifest::{FORMAT, FileEntry, Manifest, manifest_name};
use super::{CheckpointError, Tensor, encode, state_digest};

/// All of a training state at one step, copied out of the step loop.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub prefix: String,
    pub step: u64,
    pub generation: u64,
    pub lineage: String,
    /// The one that has the folder: see [`super::Lineage`].
    pub run: String,
    pub job: String,
    pub numeric_class: String,
    pub world_size: u32,
    pub settings: serde_json::Map<String, serde_json::Value>,
    pub model: Vec<Tensor>,
    pub state: Vec<Tensor>,
}

/// A complete checkpoint, as it will be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    pub step: u64,
    pub generation: u64,
    pub manifest_url: String,
    pub manifest_digest: String,
    pub state_digest: String,
}

/// After an error nothing is committed; data files that were written lie under this generation's own names.
pub async fn save(storage: &Storage, snapshot: &Snapshot, created: String) -> Result<Saved, CheckpointError> {
    let mut files = Vec::new();
    for (kind, tensors) in [("model", &snapshot.model), ("state", &snapshot.state)] {
        let name = format!("{}-{}.g{}.{kind}.safetensors", snapshot.prefix, snapshot.step, snapshot.generation);
        let bytes = encode(tensors);
        files.push(FileEntry { name: name.clone(), bytes: bytes.len() as u64, sha256: sha256(&bytes) });
        storage.put(&name, bytes).await?;
    }
    Checkpoints::new(storage.clone()).check_owner(&snapshot.lineage, &snapshot.run).await?;
    let digest = state_digest(snapshot.model.iter().chain(&snapshot.state));
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        prefix: snapshot.prefix.clone(),
        step: snapshot.step,
        generation: snapshot.generation,
        lineage: snapshot.lineage.clone(),
        job: snapshot.job.clone(),
        numeric_class: snapshot.numeric_class.clone(),
        created,
        world_size: snapshot.world_size,
        state_digest: digest.clone(),
        files,
        settings: snapshot.settings.clone(),
    };
    let name = manifest_name(&snapshot.prefix, snapshot.step);
    let bytes = manifest.encode();
    let committed = commit(storage, &name, &manifest, bytes).await?;
    Ok(Saved {
        step: snapshot.step,
        generation: committed.0,
        manifest_url: storage.url_of(&name),
        manifest_digest: sha256(&committed.1),
        state_digest: digest,
    })
}

/// The commit point. Gives the generation and the bytes of the manifest that stands in the end.
async fn commit(
    storage: &Storage,
    name: &str,
    manifest: &Manifest,
    bytes: Vec<u8>,
) -> Result<(u64, Vec<u8>), CheckpointError> {
    let created = storage.create(name, bytes.clone()).await;
    if matches!(created, Ok(Created::Yes)) {
        return Ok((manifest.generation, bytes));
    }
    // Lost a race, or the answer was lost: what lies there decides. Equal bytes mean that it is ours.
    let Some(there) = storage.get_if_there(name).await? else {
        created?;
        return Err(CheckpointError::Invalid {
            url: storage.url_of(name),
            why: "the store says that the manifest exists and does not give it".to_owned(),
        });
    };
    if there == bytes {
        return Ok((manifest.generation, bytes));
    }
    match Manifest::decode(name, &there) {
        // The same state, committed by an older generation: one is as good as the other.
        Ok(other)
            if other.lineage == manifest.lineage
                && other.state_digest == manifest.state_digest
                && super::find::verify(storage, &other).await.is_ok() =>
        {
            return Ok((other.generation, there.to_vec()));
        }
        Ok(other) if other.lineage == manifest.lineage && other.generation > manifest.generation => {
            return Err(CheckpointError::Invalid {
                url: storage.url_of(name),
                why: format!(
                    "generation {} has committed this step; this is generation {}",
                    other.generation, manifest.generation
                ),
            });
        }
        // Broken, of a run that was given up with `--fresh`, or of an older generation that went another way.
        _ => {}
    }
    storage.put(name, bytes.clone()).await?;
    Ok((manifest.generation, bytes))
}
