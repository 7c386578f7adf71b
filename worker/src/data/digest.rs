//! SHA-256 of files, and the note beside a made file that says what it was made from.

use super::error::DataError;
use super::files::{Created, FileError, Files};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub fn sha256_hex(contents: &[u8]) -> String {
    Sha256::digest(contents).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Contents of `<file>.digest`, in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestNote {
    /// Of the file beside which the note stands.
    pub file: String,
    /// Of the decoded text it was made from.
    pub data: String,
    /// Of the vocabulary used; none for a vocabulary itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<String>,
}

impl DigestNote {
    pub fn url(of: &str) -> String {
        format!("{of}.digest")
    }

    /// A note that cannot be understood is as good as none: the file is then verified by making it again.
    pub fn read(files: &dyn Files, of: &str) -> Result<Option<Self>, FileError> {
        match files.read(&Self::url(of)) {
            Ok(contents) => Ok(serde_json::from_slice(&contents).ok()),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Call only for a file that is known to be as the note says: a note that says otherwise is replaced. Where nothing
    /// can be written there is no note, and the file is verified again the next time.
    pub fn publish(&self, files: &dyn Files, of: &str) -> Result<(), DataError> {
        let mut contents = serde_json::to_vec(self).expect("a struct of strings is always valid JSON");
        contents.push(b'\n');
        let contents = Bytes::from(contents);
        let url = Self::url(of);
        match files.create(&url, contents.clone()) {
            Ok(Created::Written) | Err(FileError::NotWritable { .. }) => {}
            Ok(Created::AlreadyThere) if Self::read(files, of)?.as_ref() == Some(self) => {}
            Ok(Created::AlreadyThere) => {
                files.remove(&url)?;
                files.create(&url, contents)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
