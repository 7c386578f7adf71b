//! Logs that an earlier start of this agent had not pushed whole: finished now, so that a restart loses no line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coord_common::backoff::Backoff;
use coord_common::ids::{Generation, JobId};
use coord_common::rank::{Rank, ReplicaKey, replica_name};
use coord_common::time::Millis;
use coord_io::storage::{Storage, StorageError};
use tokio::sync::Semaphore;

/// Tries for one log; what cannot be pushed stays for the next start.
const TRIES: u32 = 8;

/// Beside each log `<generation>.log` lies `<generation>.job_dir`, which says where it belongs.
#[derive(Debug, Clone)]
pub struct Unsent {
    folder: PathBuf,
}

/// One log of the past.
#[derive(Debug, PartialEq)]
pub struct Leftover {
    pub key: ReplicaKey,
    log: PathBuf,
    job_dir: String,
    /// `logs/<replica>/<generation>` below the job dir.
    place: String,
}

impl Leftover {
    /// Nothing for a file that no agent wrote.
    fn new(job: &Path, replica: &Path, log: PathBuf, job_dir: String) -> Option<Self> {
        let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (_, rank) = name(replica).rsplit_once('-').map(|(role, rank)| (role.to_owned(), rank.to_owned()))?;
        let key = ReplicaKey {
            job: JobId::parse(&name(job)).ok()?,
            generation: Generation(name(&log).parse().ok()?),
            rank: Rank(rank.parse().ok()?),
        };
        let place = format!("logs/{}/{}", replica_name(key.rank), key.generation);
        Some(Self { key, log, job_dir, place })
    }
}

impl Unsent {
    pub fn new(work_dir: &Path) -> Self {
        Self { folder: work_dir.join("logs") }
    }

    fn note_path(&self, key: &ReplicaKey) -> PathBuf {
        let folder = self.folder.join(key.job.as_str()).join(replica_name(key.rank));
        folder.join(format!("{}.job_dir", key.generation))
    }

    /// Call when the log was begun.
    pub fn note(&self, key: &ReplicaKey, job_dir: &str) -> io::Result<()> {
        fs::write(self.note_path(key), job_dir)
    }

    /// Call when the whole log is in storage.
    pub fn forget(&self, key: &ReplicaKey) {
        // A note without a log is passed over.
        let _ = fs::remove_file(self.note_path(key));
    }

    /// Whether storage has every log. What cannot be looked up counts as not there.
    pub fn is_empty(&self) -> bool {
        self.find().is_ok_and(|left| left.is_empty())
    }

    /// What lies there; call before the first replica starts.
    pub fn find(&self) -> io::Result<Vec<Leftover>> {
        let mut found = Vec::new();
        for job in folders(&self.folder)? {
            for replica in folders(&job)? {
                for entry in fs::read_dir(&replica)? {
                    let note = entry?.path();
                    let log = note.with_extension("log");
                    if note.extension().is_some_and(|extension| extension == "job_dir") && log.is_file() {
                        found.extend(Leftover::new(&job, &replica, log, fs::read_to_string(&note)?));
                    }
                }
            }
        }
        found.sort_by(|a, b| a.log.cmp(&b.log));
        Ok(found)
    }
}

fn folders(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let entries: io::Result<Vec<_>> = fs::read_dir(parent)?.map(|entry| entry.map(|entry| entry.path())).collect();
    Ok(entries?.into_iter().filter(|path| path.is_dir()).collect())
}

/// Pushes what storage does not have yet. `turn` lets one log after the other do so.
pub async fn finish(leftover: Leftover, turn: Arc<Semaphore>) {
    let _turn = turn.acquire().await;
    let backoff = Backoff { first: Millis(500), most: Millis(30_000) };
    for tries in 1..=TRIES {
        match push(&leftover).await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, log = %leftover.log.display(), "push the rest of an earlier log");
                tokio::time::sleep(Duration::from_millis(backoff.wait(tries).0)).await;
            }
        }
    }
}

async fn push(leftover: &Leftover) -> Result<(), StorageError> {
    let storage = Storage::open(&leftover.job_dir)?;
    // Chunks are named by their first byte: the end of the last one is where the rest begins.
    let ends = storage.list(&leftover.place).await?.into_iter().filter_map(|entry| {
        let first: u64 = entry.path.strip_suffix(".log")?.parse().ok()?;
        Some(first + entry.bytes)
    });
    let sent = ends.max().unwrap_or(0);
    let text = fs::read(&leftover.log).unwrap_or_default();
    let rest = text.get(usize::try_from(sent).unwrap_or(usize::MAX)..).unwrap_or_default();
    // A line that was being written when its writer died is no line.
    let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    if whole > 0 {
        storage.put(&format!("{}/{sent:020}.log", leftover.place), rest[..whole].to_vec()).await?;
    }
    for path in [leftover.log.clone(), leftover.log.with_extension("job_dir")] {
        // What stays behind is found, and found complete, by the next start.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::logs::Logs;
    use crate::launch::Stream;

    #[tokio::test]
    async fn a_restart_pushes_the_lines_that_were_not_sent_and_nothing_twice() {
        let work_dir = tempfile::tempdir().unwrap();
        let job_dir = "memory://unsent/jobs/j";
        let key = ReplicaKey { job: JobId::parse("j").unwrap(), generation: Generation(3), rank: Rank(1) };
        let (logs, unsent) = (Logs::new(work_dir.path()).unwrap(), Unsent::new(work_dir.path()));
        logs.begin(&key).unwrap();
        unsent.note(&key, job_dir).unwrap();
        logs.append(&key, Stream::Output, b"sent");
        let sent = logs.read(&key, 0, 1000).unwrap().data;
        let storage = Storage::open(job_dir).unwrap();
        storage.put("logs/worker-replica-1/3/00000000000000000000.log", sent.clone()).await.unwrap();
        logs.append(&key, Stream::Error, b"not sent");

        let leftovers = unsent.find().unwrap();
        assert_eq!(leftovers.iter().map(|left| &left.key).collect::<Vec<_>>(), [&key]);
        for leftover in leftovers {
            finish(leftover, Arc::new(Semaphore::new(1))).await;
        }
        let chunks = storage.list("logs/worker-replica-1/3").await.unwrap();
        let names: Vec<&str> = chunks.iter().map(|entry| entry.path.as_str()).collect();
        let second = format!("{:020}.log", sent.len());
        assert_eq!(names, ["00000000000000000000.log", second.as_str()]);
        let rest = storage.get(&format!("logs/worker-replica-1/3/{second}")).await.unwrap();
        assert!(rest.ends_with(b"\tE\tnot sent\n") && rest.iter().filter(|byte| **byte == b'\n').count() == 1);
        assert_eq!(unsent.find().unwrap(), []);
    }
}
