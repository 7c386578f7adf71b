//! Snapshot files: written whole, checked when read, never changed.
//!
//! ```text
//! magic "coord-snapshot-1" | metadata length u32 | metadata | data length u64 | data | SHA-256 of all before
//! ```

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use protobuf::Message;
use raft::eraftpb::SnapshotMetadata;
use sha2::{Digest, Sha256};

use crate::raft::log::LogError;

const MAGIC: &[u8] = b"coord-snapshot-1";
const DIGEST: usize = 32;

pub struct SnapshotFiles {
    folder: PathBuf,
}

impl SnapshotFiles {
    pub fn open(folder: &Path) -> Result<Self, LogError> {
        fs::create_dir_all(folder).map_err(io("create", folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    fn path(&self, index: u64) -> PathBuf {
        self.folder.join(format!("{index:020}.snapshot"))
    }

    /// Durable when this returns: file, then its name.
    pub fn write(&self, metadata: &SnapshotMetadata, data: &[u8]) -> Result<(), LogError> {
        let path = self.path(metadata.index);
        let unfinished = path.with_extension("unfinished");
        let mut header = MAGIC.to_vec();
        let encoded = metadata.write_to_bytes().expect("metadata has no required fields");
        header.extend((encoded.len() as u32).to_be_bytes());
        header.extend(encoded);
        header.extend((data.len() as u64).to_be_bytes());
        let digest = Sha256::new().chain_update(&header).chain_update(data).finalize();

        let mut file = File::create(&unfinished).map_err(io("create", &unfinished))?;
        for part in [&header[..], data, &digest[..]] {
            file.write_all(part).map_err(io("write", &unfinished))?;
        }
        file.sync_all().map_err(io("sync", &unfinished))?;
        fs::rename(&unfinished, &path).map_err(io("rename", &unfinished))?;
        let folder = File::open(&self.folder).map_err(io("open", &self.folder))?;
        folder.sync_all().map_err(io("sync", &self.folder))
    }

    /// The data of the snapshot at `index`.
    pub fn read(&self, index: u64) -> Result<Vec<u8>, LogError> {
        let path = self.path(index);
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        match data_of(&bytes, index) {
            Ok(range) => Ok(bytes[range].to_vec()),
            Err(found) => Err(LogError::DamagedSnapshot { file: path, found }),
        }
    }

    /// Older snapshots and unfinished files go. Failing to remove one costs space only.
    pub fn remove_before(&self, index: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u64>().ok());
            if number.is_some_and(|number| number < index)
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::warn!(path = %path.display(), %error, "cannot remove an old snapshot");
            }
        }
    }
}

fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LogError {
    move |source| LogError::Io { operation, path: path.to_owned(), source }
}

fn data_of(bytes: &[u8], index: u64) -> Result<std::ops::Range<usize>, &'static str> {
    let Some(body) = bytes.len().checked_sub(DIGEST) else { return Err("too short") };
    if !bytes.starts_with(MAGIC) {
        return Err("not a snapshot");
    }
    if Sha256::digest(&bytes[..body])[..] != bytes[body..] {
        return Err("checksum does not match");
    }
    // From here on the lengths are what was written.
    let metadata_at = MAGIC.len() + 4;
    let metadata_length = number(&bytes[MAGIC.len()..metadata_at]) as usize;
    let data_at = metadata_at + metadata_length + 8;
    let metadata = SnapshotMetadata::parse_from_bytes(&bytes[metadata_at..metadata_at + metadata_length])
        .map_err(|_| "metadata does not decode")?;
    if metadata.index != index {
        return Err("holds another index than its name says");
    }
    Ok(data_at..body)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
