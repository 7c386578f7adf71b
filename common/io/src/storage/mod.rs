//! One interface to every place where objects live: `file://`, `s3://`, `gs://`, `az://`, and `memory://` for tests.

mod error;
mod open;
mod probe;
mod staged;
mod url;

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

pub use error::StorageError;
pub use url::{StorageUrl, is_url};

/// Objects above this size travel as a multipart upload, in parts of [`PART_BYTES`].
pub const MULTIPART_BYTES: usize = 32 << 20;
pub const PART_BYTES: usize = 16 << 20;

/// What [`Storage::create`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Yes,
    /// Something lies there already; it was not touched.
    AlreadyThere,
}

/// An object below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the folder that was listed.
    pub path: String,
    pub bytes: u64,
    /// Milliseconds since 1970, as the store tells it.
    pub modified_millis: i64,
}

/// What lies directly in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Relative to the folder that was listed, without a slash at the end; sorted.
    pub folders: Vec<String>,
    /// Sorted by path.
    pub objects: Vec<Entry>,
}

/// A folder in a store. Cheap to clone; all paths are relative to the folder.
#[derive(Debug, Clone)]
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    folder: Path,
    url: StorageUrl,
    identity: Arc<str>,
}

impl Storage {
    /// Opens a folder. Touches nothing: a wrong bucket or credential shows at the first call.
    pub fn open(url: &str) -> Result<Self, StorageError> {
        open::open(&StorageUrl::parse(url)?)
    }

    /// The folder's URL, without a slash at the end. Holds no secret.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// URL of an object below the folder.
    pub fn url_of(&self, path: &str) -> String {
        if path.is_empty() { self.url.as_str().to_owned() } else { format!("{}/{path}", self.url.as_str()) }
    }

    /// A folder below this one.
    pub fn folder(&self, relative: &str) -> Result<Self, StorageError> {
        let url = StorageUrl::parse(&self.url_of(relative.trim_matches('/')))?;
        let folder = self.path(relative)?;
        Ok(Self { store: self.store.clone(), folder, url, identity: self.identity.clone() })
    }

    fn path(&self, relative: &str) -> Result<Path, StorageError> {
        open::path(self.folder.as_ref(), relative)
            .map_err(|why| StorageError::InvalidUrl { url: self.url_of(relative), why })
    }

    fn error(&self, operation: &'static str, path: &str, source: object_store::Error) -> StorageError {
        StorageError::from_store(operation, self.url_of(path), &self.identity, source)
    }

    /// A disk holds more than files, and reading some of it never ends: an error if something else than a file is there.
    pub async fn expect_file(&self, operation: &'static str, path: &str) -> Result<(), StorageError> {
        if !self.url().starts_with("file://") {
            return Ok(());
        }
        let place = std::path::Path::new("/").join(self.path(path)?.as_ref());
        // What cannot be looked up gets its error from the operation itself.
        let kind = match tokio::fs::metadata(place).await {
            Ok(metadata) if metadata.is_dir() => "a folder",
            Ok(metadata) if !metadata.is_file() => "a pipe, socket or device",
            _ => return Ok(()),
        };
        Err(StorageError::NotAFile { operation, url: self.url_of(path), kind })
    }

    pub async fn get(&self, path: &str) -> Result<Bytes, StorageError> {
        self.expect_file("read", path).await?;
        let result = self.store.get(&self.path(path)?).await.map_err(|error| self.error("read", path, error))?;
        result.bytes().await.map_err(|error| self.error("read", path, error))
    }

    /// Like [`Storage::get`], with nothing for an object that is not there.
    pub async fn get_if_there(&self, path: &str) -> Result<Option<Bytes>, StorageError> {
        match self.get(path).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Size of an object, or nothing if it is not there.
    pub async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        match self.store.head(&self.path(path)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error("look up", path, error)),
        }
    }

    /// Writes an object, over an older one if there is one. It appears whole or not at all.
    pub async fn put(&self, path: &str, bytes: impl Into<Bytes>) -> Result<(), StorageError> {
        let bytes = bytes.into();
        let target = self.path(path)?;
        let result = if bytes.len() > MULTIPART_BYTES {
            self.put_parts(&target, bytes).await
        } else {
            self.store.put(&target, PutPayload::from_bytes(bytes)).await.map(drop)
        };
        result.map_err(|error| self.error("write", path, error))
    }

    async fn put_parts(&self, target: &Path, bytes: Bytes) -> Result<(), object_store::Error> {
        let mut upload = self.store.put_multipart(target).await?;
        let sent = async {
            let mut start = 0;
            while start < bytes.len() {
                let end = bytes.len().min(start + PART_BYTES);
                upload.put_part(PutPayload::from_bytes(bytes.slice(start..end))).await?;
                start = end;
            }
            upload.complete().await.map(drop)
        }
        .await;
        if sent.is_err() {
            // Parts of a broken upload cost the user money; a failure to abort changes nothing about the error.
            let _ = upload.abort().await;
        }
        sent
    }

    /// Writes an object only if none is there. Atomic on every store that this crate opens.
    pub async fn create(&self, path: &str, bytes: impl Into<Bytes>) -> Result<Created, StorageError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&self.path(path)?, PutPayload::from_bytes(bytes.into()), options).await {
            Ok(_) => Ok(Created::Yes),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(Created::AlreadyThere)
            }
            Err(error) => Err(self.error("create", path, error)),
        }
    }

    /// All objects below a folder, at any depth, sorted by path. The folder ends at a path border: `run1` never lists
    /// `run10`.
    pub async fn list(&self, folder: &str) -> Result<Vec<Entry>, StorageError> {
        let base = self.path(folder)?;
        let metas: Result<Vec<_>, _> = self.store.list(Some(&base)).try_collect().await;
        let metas = metas.map_err(|error| self.error("list", folder, error))?;
        Ok(entries_below(&base, metas))
    }

    /// The objects and folders directly in a folder: what people look at first.
    pub async fn list_level(&self, folder: &str) -> Result<Level, StorageError> {
        let base = self.path(folder)?;
        let listed = self.store.list_with_delimiter(Some(&base)).await;
        let listed = listed.map_err(|error| self.error("list", folder, error))?;
        let relative = |path: &Path| below(&base, path).filter(|path| !path.is_empty());
        let mut folders: Vec<String> = listed.common_prefixes.iter().filter_map(relative).collect();
        folders.sort();
        Ok(Level { folders, objects: entries_below(&base, listed.objects) })
    }

    /// Deletes an object; one that is not there is no error.
    pub async fn delete(&self, path: &str) -> Result<(), StorageError> {
        match self.store.delete(&self.path(path)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error("delete", path, error)),
        }
    }

    /// Removes what killed writers of objects `prefix...` in this folder have left half-written, where the store keeps
    /// such files; only the local disk does. Call when nobody writes such objects.
    pub async fn remove_unfinished(&self, prefix: &str) -> Result<(), StorageError> {
        let Some(folder) = self.url().strip_prefix("file://") else {
            return Ok(());
        };
        staged::sweep(std::path::Path::new(folder), prefix).await.map_err(|source| {
            let source = object_store::Error::Generic { store: "LocalFileSystem", source: source.into() };
            self.error("remove half-written files", prefix, source)
        })
    }

    /// Writes, reads and deletes a small object, so that a job with a bad prefix fails before its first step.
    pub async fn probe(&self) -> Result<(), StorageError> {
        probe::probe(self).await
    }
}

/// The path relative to a folder; nothing for one that does not lie in it.
fn below(base: &Path, path: &Path) -> Option<String> {
    let parts: Vec<_> = path.prefix_match(base)?.map(|part| part.as_ref().to_owned()).collect();
    Some(parts.join("/"))
}

/// The objects below a folder, sorted by path.
fn entries_below(base: &Path, metas: Vec<ObjectMeta>) -> Vec<Entry> {
    let entry = |meta: ObjectMeta| {
        let path = below(base, &meta.location).filter(|path| !path.is_empty())?;
        Some(Entry { path, bytes: meta.size, modified_millis: meta.last_modified.timestamp_millis() })
    };
    let mut entries: Vec<Entry> = metas.into_iter().filter_map(entry).collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries
}

/// Splits the URL of an object into its folder, opened, and its name.
pub fn open_object(url: &str) -> Result<(Storage, String), StorageError> {
    let parsed = StorageUrl::parse(url)?;
    let (folder, name) = parsed.split_name()?;
    Ok((open::open(&folder)?, name))
}

#[cfg(test)]
mod tests;
