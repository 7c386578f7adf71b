//! The manifest: the object whose presence commits a checkpoint.

use serde::{Deserialize, Serialize};

/// Names the format and its version; readers refuse what they do not know.
pub const FORMAT: &str = "coord.checkpoint.v1";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name beside the manifest.
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    /// Name of the checkpoint's family, `translate.ckpt`.
    pub prefix: String,
    pub step: u64,
    pub generation: u64,
    /// The run that it belongs to. The same lineage resumes; another is refused.
    pub lineage: String,
    pub job: String,
    pub numeric_class: String,
    /// Wall clock, RFC 3339.
    pub created: String,
    /// How many workers computed the last step: for people.
    pub world_size: u32,
    pub state_digest: String,
    /// Model weights, then training state.
    pub files: Vec<FileEntry>,
    /// Settings that fix the run's bits, for comparison on resume.
    pub settings: serde_json::Map<String, serde_json::Value>,
}

impl Manifest {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a manifest holds only plain values");
        bytes.push(b'\n');
        bytes
    }

    /// `name` is that of the object.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("manifest is not valid: {error}"))?;
        if manifest.format != FORMAT {
            return Err(format!("manifest has format {}, expected {FORMAT}", manifest.format));
        }
        manifest.check(name)?;
        Ok(manifest)
    }

    /// A manifest under another name than its own was renamed or edited, and files elsewhere are never its own: what
    /// it names is read and, in time, deleted.
    fn check(&self, name: &str) -> Result<(), String> {
        let own = manifest_name(&self.prefix, self.step);
        if own != name {
            return Err(format!("the manifest calls itself {own}"));
        }
        if self.files.is_empty() {
            return Err("the manifest names no files".to_owned());
        }
        for (position, file) in self.files.iter().enumerate() {
            let family = file.name.strip_prefix(self.prefix.as_str()).is_some_and(|rest| rest.starts_with('-'));
            if !family || file.name.contains('/') {
                return Err(format!("the manifest names {:?}, which is no file of {}", file.name, self.prefix));
            }
            if self.files[..position].iter().any(|other| other.name == file.name) {
                return Err(format!("the manifest names {} twice", file.name));
            }
        }
        Ok(())
    }
}

/// `translate.ckpt-200.json`
pub fn manifest_name(prefix: &str, step: u64) -> String {
    format!("{prefix}-{step}.json")
}

/// The step in a manifest's name, if it is one. Steps have no leading zeros, so each step has one
/// name; what lies in a folder below belongs to another run.
pub fn parse_manifest_name(name: &str) -> Option<(&str, u64)> {
    let stem = name.strip_suffix(".json")?;
    let (prefix, step) = stem.rsplit_once('-')?;
    let number: u64 = step.parse().ok()?;
    (prefix.ends_with(".ckpt") && !prefix.contains('/') && number.to_string() == step).then_some((prefix, number))
}
