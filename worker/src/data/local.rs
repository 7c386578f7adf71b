//! Files on this machine, by path or `file://` URL.

use super::files::{Created, FileError, Files};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A published file appears under its name complete and synced to disk, or not at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl Files for LocalFiles {
    fn read(&self, url: &str) -> Result<Bytes, FileError> {
        fs::read(path_of(url)?).map(Bytes::from).map_err(|error| failure("read", url, error))
    }

    fn size(&self, url: &str) -> Result<Option<u64>, FileError> {
        match fs::metadata(path_of(url)?) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(failure("look up", url, error)),
        }
    }

    fn create(&self, url: &str, contents: Bytes) -> Result<Created, FileError> {
        let path = path_of(url)?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        publish(&path, folder, &contents).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                FileError::NotWritable { url: url.to_owned(), source: error.into() }
            }
            _ => failure("write", url, error),
        })
    }

    fn remove(&self, url: &str) -> Result<(), FileError> {
        match fs::remove_file(path_of(url)?) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failure("remove", url, error)),
            _ => Ok(()),
        }
    }
}

/// A hard link fails if the name is taken, which a rename would not; so the first writer wins whoever races.
fn publish(path: &Path, folder: &Path, contents: &[u8]) -> io::Result<Created> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}.{serial}.tmp", std::process::id()));
    let linked = write_synced(&temporary, contents).and_then(|()| fs::hard_link(&temporary, path));
    let removed = fs::remove_file(&temporary);
    match linked {
        Ok(()) => {
            removed?;
            File::open(folder)?.sync_all()?;
            Ok(Created::Written)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Created::AlreadyThere),
        Err(error) => Err(error),
    }
}

fn write_synced(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

fn path_of(url: &str) -> Result<PathBuf, FileError> {
    if !url.starts_with("file://") {
        return Ok(PathBuf::from(url));
    }
    url::Url::parse(url).ok().and_then(|parsed| parsed.to_file_path().ok()).ok_or_else(|| FileError::Failed {
        action: "understand",
        url: url.to_owned(),
        source: "expected file:// and an absolute path".into(),
    })
}

fn failure(action: &'static str, url: &str, error: io::Error) -> FileError {
    match error.kind() {
        ErrorKind::NotFound => FileError::NotFound { url: url.to_owned() },
        _ => {
            let source = io::Error::other(format!("{action} {url}: {error}")).into();
            FileError::Failed { action, url: url.to_owned(), source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_published_once_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}/deep/vocab.to", folder.path().display());
        assert_eq!(LocalFiles.size(&url).unwrap(), None);
        assert_eq!(LocalFiles.create(&url, Bytes::from_static(b"first")).unwrap(), Created::Written);
        assert_eq!(LocalFiles.create(&url, Bytes::from_static(b"second")).unwrap(), Created::AlreadyThere);
        assert_eq!(LocalFiles.read(&url).unwrap(), "first");
        assert_eq!(LocalFiles.size(&url).unwrap(), Some(5));
        let names: Vec<_> = fs::read_dir(folder.path().join("deep")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["vocab.to"]);
        LocalFiles.remove(&url).unwrap();
        LocalFiles.remove(&url).unwrap();
        assert!(matches!(LocalFiles.read(&url), Err(FileError::NotFound { .. })));
    }

    #[test]
    fn of_many_racing_writers_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let url = folder.path().join("one").display().to_string();
        let written = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8u8)
                .map(|racer| {
                    let url = &url;
                    scope.spawn(move || LocalFiles.create(url, Bytes::from(vec![racer; 1000])).unwrap())
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(written.iter().filter(|created| **created == Created::Written).count(), 1);
        let contents = LocalFiles.read(&url).unwrap();
        assert_eq!(contents, vec![contents[0]; 1000]);
    }
}
