//! Pushes replicas' logs to object storage: a chunk at 1 MiB or after 10 s, named by its first byte.

use std::time::Duration;

use coord_common::backoff::Backoff;
use coord_common::rank::{ReplicaKey, replica_name};
use coord_common::time::Millis;
use coord_io::storage::{Storage, StorageError};
use tokio::time::Instant;

use super::logs::Logs;
use super::unsent::Unsent;

const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_AGE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(250);
/// After the end of its replica a log stays readable here for so long; then storage has it.
const KEEP: Duration = Duration::from_secs(60);

/// Runs until the log has ended and all of it is in storage. A store that is unwell is tried again for ever, ever more
/// slowly: the log stays on this disk meanwhile.
pub async fn upload(logs: Logs, unsent: Unsent, key: ReplicaKey, job_dir: String) {
    let place = Place::new(&key, job_dir);
    let backoff = Backoff { first: Millis(500), most: Millis(30_000) };
    let (mut position, mut failures) = (0u64, 0);
    let mut is_free = false;
    let mut last = Instant::now();
    loop {
        let Some(piece) = logs.read(&key, position, CHUNK_BYTES) else {
            return;
        };
        let due = piece.ended || piece.data.len() >= CHUNK_BYTES * 9 / 10 || last.elapsed() >= CHUNK_AGE;
        if !piece.data.is_empty() && due {
            let name = format!("{position:020}.log");
            let length = piece.data.len() as u64;
            let put = async {
                if !is_free {
                    place.free().await?;
                    is_free = true;
                }
                place.put(&name, piece.data).await
            };
            match put.await {
                Ok(()) => {
                    position += length;
                    failures = 0;
                    last = Instant::now();
                }
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        tracing::warn!(job = %key.job, generation = key.generation.0, rank = key.rank.0, %error, "upload a log; trying on");
                    }
                    tokio::time::sleep(Duration::from_millis(backoff.wait(failures).0)).await;
                    continue;
                }
            }
        }
        if piece.ended && logs.read(&key, position, 1).is_none_or(|rest| rest.data.is_empty()) {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    unsent.forget(&key);
    tokio::time::sleep(KEEP).await;
    logs.forget(&key);
}

/// Where the chunks of a log lie.
struct Place {
    job_dir: String,
    folder: String,
    /// For the log of an earlier job of the same name.
    aside: String,
}

impl Place {
    fn new(key: &ReplicaKey, job_dir: String) -> Self {
        let folder = format!("logs/{}/{}", replica_name(key.rank), key.generation);
        let aside = format!("{folder}.before-{}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ"));
        Self { job_dir, folder, aside }
    }

    /// A coordinator that lost its state gives old names away again. Chunks are named by position, so those of two jobs
    /// must not lie in one folder.
    async fn free(&self) -> Result<(), StorageError> {
        let storage = Storage::open(&self.job_dir)?;
        for old in storage.list(&self.folder).await? {
            let path = format!("{}/{}", self.folder, old.path);
            storage.put(&format!("{}/{}", self.aside, old.path), storage.get(&path).await?).await?;
            storage.delete(&path).await?;
        }
        Ok(())
    }

    async fn put(&self, name: &str, data: Vec<u8>) -> Result<(), StorageError> {
        Storage::open(&self.job_dir)?.put(&format!("{}/{name}", self.folder), data).await
    }
}

#[cfg(test)]
mod tests {
    use coord_common::ids::{Generation, JobId};
    use coord_common::rank::Rank;

    use super::*;
    use crate::launch::Stream;

    #[tokio::test]
    async fn the_log_of_an_earlier_job_of_the_same_name_is_set_aside_whole() {
        let work_dir = tempfile::tempdir().unwrap();
        let job_dir = "memory://upload/jobs/j";
        let key = ReplicaKey { job: JobId::parse("j").unwrap(), generation: Generation(1), rank: Rank(0) };
        let storage = Storage::open(job_dir).unwrap();
        let place = "logs/master-replica-0/1";
        for (position, text) in [(0, "old\n"), (4, "older\n")] {
            storage.put(&format!("{place}/{position:020}.log"), text).await.unwrap();
        }
        let (logs, unsent) = (Logs::new(work_dir.path()).unwrap(), Unsent::new(work_dir.path()));
        logs.begin(&key).unwrap();
        unsent.note(&key, job_dir).unwrap();
        logs.append(&key, Stream::Output, b"new");
        logs.end(&key);
        let pushing = tokio::spawn(upload(logs, unsent.clone(), key, job_dir.to_owned()));
        let pushed = async {
            while !unsent.is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), pushed).await.unwrap();
        pushing.abort();
        let chunks = storage.list(place).await.unwrap();
        let names: Vec<&str> = chunks.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["00000000000000000000.log"]);
        let text = storage.get(&format!("{place}/{}", names[0])).await.unwrap();
        assert!(text.ends_with(b"\tO\tnew\n"));
        let everything = storage.list("logs/master-replica-0").await.unwrap();
        let aside: Vec<&str> =
            everything.iter().map(|entry| entry.path.as_str()).filter(|path| path.starts_with("1.before-")).collect();
        let [first, second] = aside[..] else { panic!("{everything:?}") };
        for (path, text) in [(first, "old\n"), (second, "older\n")] {
            assert_eq!(storage.get(&format!("logs/master-replica-0/{path}")).await.unwrap(), text);
        }
    }
}
