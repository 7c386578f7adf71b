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

/// Clears what an earlier job of the same name left in this log's place: chunks are named by position and would mix.
/// Then runs until the log has ended and all of it is in storage. A store that is unwell is tried again for ever, ever more
/// slowly: the log stays on this disk meanwhile.
pub async fn upload(logs: Logs, unsent: Unsent, key: ReplicaKey, job_dir: String) {
    let folder = format!("logs/{}/{}", replica_name(key.rank), key.generation);
    let backoff = Backoff { first: Millis(500), most: Millis(30_000) };
    let (mut position, mut failures) = (0u64, 0);
    let mut is_clear = false;
    let mut last = Instant::now();
    loop {
        let Some(piece) = logs.read(&key, position, CHUNK_BYTES) else {
            return;
        };
        let due = piece.ended || piece.data.len() >= CHUNK_BYTES * 9 / 10 || last.elapsed() >= CHUNK_AGE;
        if !piece.data.is_empty() && due {
            let name = format!("{position:020}.log");
            let length = piece.data.len() as u64;
            match put(&job_dir, &folder, &name, piece.data, &mut is_clear).await {
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

async fn put(job_dir: &str, folder: &str, name: &str, data: Vec<u8>, is_clear: &mut bool) -> Result<(), StorageError> {
    let storage = Storage::open(job_dir)?;
    if !*is_clear {
        for old in storage.list(folder).await? {
            storage.delete(&format!("{folder}/{}", old.path)).await?;
        }
        *is_clear = true;
    }
    storage.put(&format!("{folder}/{name}"), data).await
}

#[cfg(test)]
mod tests {
    use coord_common::ids::{Generation, JobId};
    use coord_common::rank::Rank;

    use super::*;
    use crate::launch::Stream;

    #[tokio::test]
    async fn a_log_takes_the_place_of_an_earlier_job_of_the_same_name() {
        let work_dir = tempfile::tempdir().unwrap();
        let job_dir = "memory://upload/jobs/j";
        let key = ReplicaKey { job: JobId::parse("j").unwrap(), generation: Generation(1), rank: Rank(0) };
        let storage = Storage::open(job_dir).unwrap();
        let place = "logs/master-replica-0/1";
        for position in [0, 70] {
            storage.put(&format!("{place}/{position:020}.log"), b"old\n".as_slice()).await.unwrap();
        }
        let (logs, unsent) = (Logs::new(work_dir.path()).unwrap(), Unsent::new(work_dir.path()));
        logs.begin(&key).unwrap();
        unsent.note(&key, job_dir).unwrap();
        logs.append(&key, Stream::Output, b"new");
        logs.end(&key);
        let pushed = tokio::spawn(upload(logs, unsent.clone(), key, job_dir.to_owned()));
        while !unsent.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        pushed.abort();
        let chunks = storage.list(place).await.unwrap();
        let names: Vec<&str> = chunks.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["00000000000000000000.log"]);
        let text = storage.get(&format!("{place}/{}", names[0])).await.unwrap();
        assert!(text.ends_with(b"\tO\tnew\n"));
    }
}
