//! Pushes replicas' logs to object storage: a chunk at 1 MiB or after 10 s, named by its first byte.

use std::time::Duration;

use coord_common::backoff::Backoff;
use coord_common::rank::{ReplicaKey, replica_name};
use coord_common::time::Millis;
use coord_io::storage::Storage;
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
    let folder = format!("logs/{}/{}", replica_name(key.rank), key.generation);
    let backoff = Backoff { first: Millis(500), most: Millis(30_000) };
    let (mut position, mut failures) = (0u64, 0);
    let mut last = Instant::now();
    loop {
        let Some(piece) = logs.read(&key, position, CHUNK_BYTES) else {
            return;
        };
        let due = piece.ended || piece.data.len() >= CHUNK_BYTES * 9 / 10 || last.elapsed() >= CHUNK_AGE;
        if !piece.data.is_empty() && due {
            let name = format!("{position:020}.log");
            let length = piece.data.len() as u64;
            match put(&job_dir, &folder, &name, piece.data).await {
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

async fn put(job_dir: &str, folder: &str, name: &str, data: Vec<u8>) -> Result<(), coord_io::storage::StorageError> {
    Storage::open(job_dir)?.put(&format!("{folder}/{name}"), data).await
}
