//! A folder of data files, a log that can be looked at, and storage with one folder that refuses writes.

use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tempfile::TempDir;
use worker::data::buckets::TRANSLATE_BUCKETS;
use worker::data::encoding::Encoding;
use worker::data::error::DataError;
use worker::data::files::{Created, FileError, Files};
use worker::data::local::LocalFiles;
use worker::data::prepare::{DataFile, PrepareSettings, Prepared, SideSettings, prepare};

pub struct Folder {
    folder: TempDir,
    pub storage: Storage,
}

impl Folder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), storage: Storage::default() }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = PathBuf::from(self.path(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn has(&self, name: &str) -> bool {
        Path::new(&self.path(name)).exists()
    }

    /// Training on `train.a` and `train.b`, testing on `test.a` and `test.b`, vocabularies in `data`.
    pub fn settings(&self, size: usize) -> PrepareSettings {
        let side = |letter: &str, name: &str| SideSettings {
            vocabulary_size: size,
            vocabulary_size_flag: format!("--{name}_vocab_size"),
            train: DataFile { url: self.path(&format!("train.{letter}")), flag: format!("--{name}_train_data") },
            dev: DataFile { url: self.path(&format!("test.{letter}")), flag: format!("--{name}_dev_data") },
        };
        PrepareSettings {
            source: side("a", "from"),
            target: side("b", "to"),
            data_dir: self.path("data"),
            encoding: Encoding::Utf8,
            keep_vocabulary: false,
            memory_limit: None,
            buckets: TRANSLATE_BUCKETS.to_vec(),
        }
    }

    pub fn prepare(&self, settings: &PrepareSettings) -> (Result<Prepared, DataError>, Vec<String>) {
        let mut said = Vec::new();
        let here = format!("{}/", self.folder.path().display());
        let outcome = prepare(&self.storage, settings, &mut |line| said.push(line.replace(&here, "")));
        (outcome, said)
    }

    /// The refusal, with paths as seen from this folder; also checks that nothing was written.
    pub fn refusal(&self, settings: &PrepareSettings) -> (String, DataError) {
        let before = self.storage.writes();
        let error = self.prepare(settings).0.expect_err("something is wrong with the data");
        assert_eq!(self.storage.writes(), before, "a refusal leaves nothing behind");
        (error.to_string().replace(&format!("{}/", self.folder.path().display()), ""), error)
    }
}

/// Files on this machine; names that start with `read_only` cannot be created.
#[derive(Default)]
pub struct Storage {
    pub read_only: Option<String>,
    writes: Mutex<usize>,
}

impl Storage {
    /// Calls that asked to change something.
    pub fn writes(&self) -> usize {
        *self.writes.lock().unwrap()
    }
}

impl Files for Storage {
    fn read(&self, url: &str) -> Result<Bytes, FileError> {
        LocalFiles.read(url)
    }

    fn size(&self, url: &str) -> Result<Option<u64>, FileError> {
        LocalFiles.size(url)
    }

    fn create(&self, url: &str, contents: Bytes) -> Result<Created, FileError> {
        *self.writes.lock().unwrap() += 1;
        if self.read_only.as_ref().is_some_and(|prefix| url.starts_with(prefix)) {
            return Err(FileError::NotWritable { url: url.to_owned(), source: "permission denied".into() });
        }
        LocalFiles.create(url, contents)
    }

    fn remove(&self, url: &str) -> Result<(), FileError> {
        *self.writes.lock().unwrap() += 1;
        LocalFiles.remove(url)
    }
}
