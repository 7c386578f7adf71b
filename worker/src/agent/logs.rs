//! Logs of this agent's replicas on its own disk: what is read by position and uploaded from.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coord_common::rank::{ReplicaKey, replica_name};

use super::tail::Tail;
use crate::launch::Stream;

/// One replica's log: lines `<time>\t<stream>\t<text>`, position = byte.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    length: u64,
    tail: Tail,
    ended: bool,
}

/// Cloneable handle to all logs.
#[derive(Debug, Clone)]
pub struct Logs {
    folder: PathBuf,
    logs: Arc<Mutex<BTreeMap<ReplicaKey, Log>>>,
}

/// A piece of a log.
#[derive(Debug, PartialEq)]
pub struct Piece {
    pub data: Vec<u8>,
    /// The replica is gone and `data` reaches the end.
    pub ended: bool,
}

impl Logs {
    pub fn new(work_dir: &Path) -> io::Result<Self> {
        let folder = work_dir.join("logs");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, logs: Arc::default() })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<ReplicaKey, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, key: &ReplicaKey) -> io::Result<()> {
        let folder = self.folder.join(key.job.as_str()).join(replica_name(key.rank));
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.log", key.generation));
        // What lies there was written by an earlier agent, or for a cluster that lost its state.
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
        let log = Log { path, file, length: 0, tail: Tail::default(), ended: false };
        self.all().insert(key.clone(), log);
        Ok(())
    }

    /// Appends whole lines. An error of the disk is told once a line and loses that line, not the replica.
    pub fn append(&self, key: &ReplicaKey, stream: Stream, text: &[u8]) {
        let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let mut line = format!("{time}\t{}\t", stream.letter()).into_bytes();
        line.extend_from_slice(text);
        line.push(b'\n');
        let mut logs = self.all();
        let Some(log) = logs.get_mut(key) else {
            return;
        };
        if stream != Stream::Platform {
            log.tail.push(stream, text);
        }
        match log.file.write_all(&line) {
            Ok(()) => log.length += line.len() as u64,
            Err(error) => tracing::warn!(%error, path = %log.path.display(), "write a replica's log"),
        }
    }

    pub fn end(&self, key: &ReplicaKey) -> String {
        let mut logs = self.all();
        let Some(log) = logs.get_mut(key) else {
            return String::new();
        };
        log.ended = true;
        log.tail.text()
    }

    /// Nothing for a log that this agent does not have. Ends at a line's end, so that no line is given in halves.
    pub fn read(&self, key: &ReplicaKey, position: u64, limit: usize) -> Option<Piece> {
        let (path, length, ended) = {
            let logs = self.all();
            let log = logs.get(key)?;
            (log.path.clone(), log.length, log.ended)
        };
        let wanted = usize::try_from(length.saturating_sub(position)).unwrap_or(usize::MAX).min(limit);
        match read_at(&path, position, wanted) {
            Ok(mut data) => {
                let whole = data.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                // A line longer than the limit is given in pieces: it cannot be given otherwise.
                if whole > 0 {
                    data.truncate(whole);
                }
                let ended = ended && position + data.len() as u64 >= length;
                Some(Piece { data, ended })
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "read a replica's log");
                None
            }
        }
    }

    pub fn forget(&self, key: &ReplicaKey) {
        if let Some(log) = self.all().remove(key) {
            // What stays behind is only disk space; the next start of the agent clears it.
            let _ = fs::remove_file(&log.path);
        }
    }
}

fn read_at(path: &Path, position: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(position))?;
    let mut data = vec![0; bytes];
    file.read_exact(&mut data)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use coord_common::ids::{Generation, JobId};
    use coord_common::rank::Rank;

    use super::*;

    #[test]
    fn a_log_is_read_by_position_in_whole_lines_and_says_when_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let logs = Logs::new(folder.path()).unwrap();
        let key = ReplicaKey { job: JobId::parse("j").unwrap(), generation: Generation(1), rank: Rank(0) };
        assert_eq!(logs.read(&key, 0, 100), None);
        logs.begin(&key).unwrap();
        logs.append(&key, Stream::Output, b"one\xff");
        logs.append(&key, Stream::Error, b"two");
        let first = logs.read(&key, 0, 40).unwrap();
        assert!(first.data.ends_with(b"\tO\tone\xff\n") && !first.ended);
        let position = first.data.len() as u64;
        assert!(!logs.read(&key, position, 1000).unwrap().ended);
        assert_eq!(logs.end(&key), "one\u{fffd}\ntwo\n");
        let second = logs.read(&key, position, 1000).unwrap();
        assert!(second.data.ends_with(b"\tE\ttwo\n") && second.ended);
    }
}
