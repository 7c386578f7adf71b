//! Finds the newest complete checkpoint: by the step in the manifests, never by time, name order or pointer.

use std::fmt;

use coord_io::storage::Storage;
use serde::{Deserialize, Serialize};

use super::digest::sha256;
use super::{CheckpointError, Manifest, Tensor, decode, parse_manifest_name, state_digest};

/// A folder that may hold checkpoints.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    storage: Storage,
}

/// Verified: every file is there with its size and digest, and the tensors give the state digest.
#[derive(Debug, Clone)]
pub struct Complete {
    pub manifest: Manifest,
    pub manifest_url: String,
    pub manifest_digest: String,
    /// Model and state together, in name order.
    pub tensors: Vec<Tensor>,
}

/// A manifest that was passed over, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejected {
    pub step: u64,
    pub name: String,
    pub why: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} ({}): {}", self.step, self.name, self.why)
    }
}

/// Every data file ends so.
pub(super) const DATA_SUFFIX: &str = ".safetensors";

/// Names the run that a folder belongs to.
pub(super) const LINEAGE_FILE: &str = "lineage.json";

/// Who writes in a folder now. A run that comes later takes it over, whether it resumes or begins anew, and the one
/// before then fails instead of writing between its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// Of the checkpoints that belong together: each resumes from the one before.
    pub lineage: String,
    /// Its name, for people.
    pub job: String,
    /// The same over all generations of a job. Jobs of the same name, and each call of `coord local train`, have others.
    #[serde(default)]
    pub run: String,
    /// Runs that had the folder before, newest last.
    #[serde(default)]
    pub earlier: Vec<String>,
}

/// Earlier runs that a folder remembers: one that comes back after so many others takes the folder again.
pub(super) const EARLIER_KEPT: usize = 100;

impl Lineage {
    /// Of a run that takes the folder from `before`.
    pub fn taken(lineage: String, job: &str, run: &str, before: Option<Lineage>) -> Self {
        let mut earlier = before.map_or_else(Vec::new, |before| {
            let mut earlier = before.earlier;
            earlier.extend((before.run != run).then_some(before.run));
            earlier
        });
        earlier.drain(..earlier.len().saturating_sub(EARLIER_KEPT));
        Self { lineage, job: job.to_owned(), run: run.to_owned(), earlier }
    }
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Only this step.
    pub step: Option<u64>,
    /// Only this run.
    pub lineage: Option<String>,
}

impl Checkpoints {
    pub fn new(storage: Storage) -> Self {
        Self { storage }
    }

    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Steps and names of all manifests, newest first. Nothing is read but the listing.
    pub async fn names(&self) -> Result<Vec<(u64, String)>, CheckpointError> {
        let entries = self.storage.list("").await?;
        let mut names: Vec<(u64, String)> = entries
            .into_iter()
            .filter_map(|entry| parse_manifest_name(&entry.path).map(|(_, step)| (step, entry.path.clone())))
            .collect();
        names.sort_by(|a, b| b.cmp(a));
        Ok(names)
    }

    /// The run that the folder belongs to, if one has begun there. After `--fresh` older runs' checkpoints may lie
    /// beside its own.
    pub async fn lineage(&self) -> Result<Option<Lineage>, CheckpointError> {
        let bytes = self.storage.get_if_there(LINEAGE_FILE).await?;
        // A file that is not ours says nothing; manifests carry their lineage themselves.
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Gives the folder to this run.
    pub async fn take(&self, lineage: &Lineage) -> Result<(), CheckpointError> {
        let bytes = serde_json::to_vec(lineage).expect("strings are valid JSON");
        Ok(self.storage.put(LINEAGE_FILE, bytes).await?)
    }

    /// An error if the folder is another run's by now.
    pub async fn check_owner(&self, lineage: &str, run: &str) -> Result<(), CheckpointError> {
        match self.lineage().await? {
            Some(owner) if owner.lineage != lineage || owner.run != run => {
                Err(CheckpointError::TakenOver { url: self.storage.url().to_owned(), job: owner.job })
            }
            _ => Ok(()),
        }
    }

    /// What a reader of the folder gets: the newest of its run, or the step that was asked for, also of an earlier run
    /// where its own has none of that step.
    pub async fn choose(
        &self,
        step: Option<u64>,
        accept: impl Fn(&Complete) -> Result<(), String>,
    ) -> Result<(Complete, Vec<Rejected>), CheckpointError> {
        let lineage = self.lineage().await?.map(|run| run.lineage);
        let (mut found, mut rejected) = self.newest(&Search { step, lineage }, &accept).await?;
        if found.is_none() && rejected.is_empty() && step.is_some() {
            (found, rejected) = self.newest(&Search { step, lineage: None }, &accept).await?;
        }
        match found {
            Some(found) => Ok((found, rejected)),
            None if rejected.is_empty() => Err(self.nothing(step).await?),
            None => Err(CheckpointError::AllRejected { url: self.storage.url().to_owned(), rejected }),
        }
    }

    /// The error of a folder without a checkpoint, or without this one.
    pub async fn nothing(&self, step: Option<u64>) -> Result<CheckpointError, CheckpointError> {
        let url = self.storage.url().to_owned();
        let mut there: Vec<u64> = self.names().await?.into_iter().map(|(step, _)| step).collect();
        there.dedup();
        Ok(match step {
            Some(step) if !there.is_empty() => CheckpointError::NoSuchStep { step, url, there },
            _ => CheckpointError::None { url },
        })
    }

    /// Data files that no manifest names: their writer ended before it committed, or is at it. Nothing if a manifest
    /// cannot be read, as that may name anything.
    pub async fn uncommitted(&self) -> Result<Vec<String>, CheckpointError> {
        let mut named = Vec::new();
        for (_, name) in self.names().await? {
            match self.manifest(&name).await {
                Ok((manifest, _)) => named.extend(manifest.files.into_iter().map(|file| file.name)),
                Err(CheckpointError::Invalid { .. }) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        let entries = self.storage.list("").await?;
        let data = entries.into_iter().map(|entry| entry.path).filter(|path| path.ends_with(DATA_SUFFIX));
        Ok(data.filter(|path| !path.contains('/') && !named.contains(path)).collect())
    }

    pub async fn manifest(&self, name: &str) -> Result<(Manifest, Vec<u8>), CheckpointError> {
        let bytes = self.storage.get(name).await?;
        let manifest = Manifest::decode(name, &bytes)
            .map_err(|why| CheckpointError::Invalid { url: self.storage.url_of(name), why })?;
        Ok((manifest, bytes.to_vec()))
    }

    /// Reads and verifies one checkpoint.
    pub async fn load(&self, name: &str) -> Result<Complete, CheckpointError> {
        let (manifest, bytes) = self.manifest(name).await?;
        self.complete(name, manifest, &bytes).await
    }

    async fn complete(&self, name: &str, manifest: Manifest, bytes: &[u8]) -> Result<Complete, CheckpointError> {
        let tensors = verify(&self.storage, &manifest).await?;
        Ok(Complete { manifest, manifest_url: self.storage.url_of(name), manifest_digest: sha256(bytes), tensors })
    }

    /// The newest complete checkpoint, and those that were passed over on the way to it. `accept` may reject a
    /// complete one for a reason of its own.
    pub async fn newest(
        &self,
        search: &Search,
        accept: impl Fn(&Complete) -> Result<(), String>,
    ) -> Result<(Option<Complete>, Vec<Rejected>), CheckpointError> {
        let mut rejected = Vec::new();
        for (step, name) in self.names().await? {
            if search.step.is_some_and(|wanted| wanted != step) {
                continue;
            }
            let found = match self.manifest(&name).await {
                // Of another run: none of its data is read.
                Ok((manifest, _)) if search.lineage.as_ref().is_some_and(|own| *own != manifest.lineage) => continue,
                Ok((manifest, bytes)) => self.complete(&name, manifest, &bytes).await,
                Err(error) => Err(error),
            };
            let verdict = match found {
                Ok(found) => match accept(&found) {
                    Ok(()) => return Ok((Some(found), rejected)),
                    Err(why) => why,
                },
                Err(CheckpointError::Storage(error)) if !error.is_not_found() => return Err(error.into()),
                Err(CheckpointError::Invalid { why, .. }) => why,
                Err(error) => error.to_string(),
            };
            rejected.push(Rejected { step, name, why: verdict });
        }
        Ok((None, rejected))
    }
}

/// Checks number, size and digest of the files and the digest of the whole; gives the tensors.
pub async fn verify(storage: &Storage, manifest: &Manifest) -> Result<Vec<Tensor>, CheckpointError> {
    let invalid = |name: &str, why: String| CheckpointError::Invalid { url: storage.url_of(name), why };
    let mut tensors = Vec::new();
    for file in &manifest.files {
        let Some(bytes) = storage.get_if_there(&file.name).await? else {
            return Err(invalid(&file.name, format!("{} is missing", file.name)));
        };
        if bytes.len() as u64 != file.bytes {
            let why = format!("{} has {} bytes, the manifest says {}", file.name, bytes.len(), file.bytes);
            return Err(invalid(&file.name, why));
        }
        if sha256(&bytes) != file.sha256 {
            return Err(invalid(
                &file.name,
                format!("{} is damaged: its SHA-256 differs from the manifest's", file.name),
            ));
        }
        tensors.extend(decode(&bytes).map_err(|why| invalid(&file.name, why))?);
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let digest = state_digest(&tensors);
    if digest != manifest.state_digest {
        let why = format!("the state digest is {digest}, the manifest says {}", manifest.state_digest);
        return Err(invalid(&manifest.prefix, why));
    }
    Ok(tensors)
}
