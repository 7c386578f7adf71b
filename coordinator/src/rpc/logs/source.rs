//! Where a replica's log is read from: the agent that wrote it, or the chunks that it pushed to storage.

use bytes::{Bytes, BytesMut};
use coord_common::{Generation, JobId, Rank, WorkerId, replica_name};
use coord_io::storage::{Storage, StorageError};
use coord_proto::v1::ReadLog;

use crate::leader::Leader;

/// Bytes of one read.
const READ_BYTES: u32 = 256 << 10;

/// One log: a replica of one generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub job: JobId,
    pub generation: Generation,
    pub rank: Rank,
    /// Workers that may have it.
    pub workers: Vec<WorkerId>,
}

impl Log {
    pub fn task(&self) -> String {
        replica_name(self.rank)
    }

    fn folder(&self) -> String {
        format!("logs/{}/{}", self.task(), self.generation)
    }
}

/// Bytes from a position on.
#[derive(Debug)]
pub struct Read {
    pub data: Bytes,
    pub by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Its agent; `ended` = `data` reaches the end of a log that will not grow.
    Agent { ended: bool },
    /// No agent that is connected has the log; `ended` = `data` reaches the end of what lies in storage.
    Storage { ended: bool },
}

pub struct Source {
    leader: Leader,
    job_dir: String,
    storage: Option<Storage>,
}

impl Source {
    pub fn new(leader: Leader, job_dir: String) -> Self {
        Self { leader, job_dir, storage: None }
    }

    pub async fn read(&mut self, log: &Log, position: u64) -> Result<Read, StorageError> {
        let connected = self.leader.agents().connected();
        for worker in log.workers.iter().filter(|worker| connected.contains(worker)) {
            let question = ReadLog {
                request: 0,
                job: log.job.to_string(),
                generation: log.generation.0,
                rank: log.rank.0,
                position,
                limit: READ_BYTES,
            };
            match self.leader.read_log(worker, question).await {
                Ok(data) if data.known => {
                    return Ok(Read { data: data.data, by: By::Agent { ended: data.ended } });
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(job = %log.job, %error, "cannot read a log from its agent"),
            }
        }
        self.read_storage(log, position).await
    }

    /// What lies in storage from `position` on, up to the end or a gap, [`READ_BYTES`] or somewhat more.
    async fn read_storage(&mut self, log: &Log, position: u64) -> Result<Read, StorageError> {
        let storage = match &self.storage {
            Some(storage) => storage,
            None => self.storage.insert(Storage::open(&self.job_dir)?),
        };
        let folder = log.folder();
        let chunks: Vec<Chunk> = storage.list(&folder).await?.into_iter().filter_map(Chunk::of).collect();
        let mut data = BytesMut::new();
        let mut end = position;
        while let Some(chunk) = chunk_at(&chunks, end) {
            if data.len() >= READ_BYTES as usize {
                return Ok(Read { data: data.freeze(), by: By::Storage { ended: false } });
            }
            let bytes = storage.get(&format!("{folder}/{}", chunk.path)).await?;
            let skipped = usize::try_from(end - chunk.first).unwrap_or(usize::MAX).min(bytes.len());
            if skipped == bytes.len() {
                break;
            }
            data.extend_from_slice(&bytes[skipped..]);
            end = position + data.len() as u64;
        }
        Ok(Read { data: data.freeze(), by: By::Storage { ended: true } })
    }
}

struct Chunk {
    path: String,
    /// Position of its first byte in the log: its name.
    first: u64,
    bytes: u64,
}

impl Chunk {
    fn of(entry: coord_io::storage::Entry) -> Option<Self> {
        let first = entry.path.strip_suffix(".log")?.parse().ok()?;
        Some(Self { path: entry.path, first, bytes: entry.bytes })
    }
}

/// Chunks may overlap after a restart of an agent; their bytes are the same.
fn chunk_at(chunks: &[Chunk], position: u64) -> Option<&Chunk> {
    chunks.iter().rev().find(|chunk| chunk.first <= position && position < chunk.first + chunk.bytes)
}
