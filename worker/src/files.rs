//! Training data anywhere: the data module's files over object storage.

use bytes::Bytes;
use coord_io::storage::{self, StorageError};
use tokio::runtime::Handle;

use crate::data::files::{Created, FileError, Files};

/// Every path may be a plain path or a storage URL.
#[derive(Debug, Clone)]
pub struct StoredFiles {
    runtime: Handle,
}

impl StoredFiles {
    /// `runtime` must not be the caller's own: calls wait for it.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime }
    }
}

fn failed(action: &'static str, url: &str, error: StorageError) -> FileError {
    let url = url.to_owned();
    match error {
        StorageError::NotFound { .. } => FileError::NotFound { url },
        StorageError::Denied { .. } if action == "create" => FileError::NotWritable { url, source: Box::new(error) },
        _ => FileError::Failed { action, url, source: Box::new(error) },
    }
}

impl Files for StoredFiles {
    fn read(&self, url: &str) -> Result<Bytes, FileError> {
        self.runtime
            .block_on(async {
                let (folder, name) = storage::open_object(url)?;
                folder.get(&name).await
            })
            .map_err(|error| failed("read", url, error))
    }

    fn size(&self, url: &str) -> Result<Option<u64>, FileError> {
        self.runtime
            .block_on(async {
                let (folder, name) = storage::open_object(url)?;
                folder.expect_file("look up", &name).await?;
                folder.size(&name).await
            })
            .map_err(|error| failed("look up", url, error))
    }

    fn create(&self, url: &str, contents: Bytes) -> Result<Created, FileError> {
        let created = self.runtime.block_on(async {
            let (folder, name) = storage::open_object(url)?;
            folder.create(&name, contents).await
        });
        match created.map_err(|error| failed("create", url, error))? {
            storage::Created::Yes => Ok(Created::Written),
            storage::Created::AlreadyThere => Ok(Created::AlreadyThere),
        }
    }

    fn remove(&self, url: &str) -> Result<(), FileError> {
        self.runtime
            .block_on(async {
                let (folder, name) = storage::open_object(url)?;
                folder.delete(&name).await
            })
            .map_err(|error| failed("remove", url, error))
    }
}
