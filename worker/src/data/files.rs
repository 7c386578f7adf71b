//! Whole files by URL: what preparing data asks of storage.

use bytes::Bytes;
use std::error::Error;

/// What became of a file to be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Written,
    /// Somebody was earlier; nothing was changed.
    AlreadyThere,
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{url} does not exist")]
    NotFound { url: String },
    /// The place can never be written to: no permission, or a read-only store.
    #[error("{url} cannot be written: {source}")]
    NotWritable { url: String, source: Box<dyn Error + Send + Sync> },
    /// The source names what was tried and where.
    #[error("{source}")]
    Failed { action: &'static str, url: String, source: Box<dyn Error + Send + Sync> },
}

/// Paths and storage URLs are taken as they come; `join` is the only arithmetic done on them.
pub trait Files: Send + Sync {
    fn read(&self, url: &str) -> Result<Bytes, FileError>;

    /// `None` if there is no such file.
    fn size(&self, url: &str) -> Result<Option<u64>, FileError>;

    /// Publishes the whole file at once, only if the name is free. Missing folders are made.
    fn create(&self, url: &str, contents: Bytes) -> Result<Created, FileError>;

    /// Also right if there is no such file.
    fn remove(&self, url: &str) -> Result<(), FileError>;
}

pub fn join(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// The last part of a path or URL.
pub fn file_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}
