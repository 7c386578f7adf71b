//! Where Raft's log lies: one trait, on disk (`raft-engine`) and in memory (simulation, tests).

pub mod disk;
pub mod error;
pub mod memory;
mod mirror;
pub mod tail;

use raft::eraftpb::{Entry, HardState, Snapshot, SnapshotMetadata};

pub use error::{LogError, lost};

/// What must be durable before the messages of a ready may leave: written as one synced batch.
#[derive(Default)]
pub struct Batch {
    pub entries: Vec<Entry>,
    pub hard_state: Option<HardState>,
    /// Received from the leader: replaces everything before it.
    pub snapshot: Option<Snapshot>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.hard_state.is_none() && self.snapshot.is_none()
    }
}

/// Entries kept behind a snapshot, so that a follower that is only a little late needs no snapshot.
pub const ENTRIES_KEPT: u64 = 1_000;

/// Raft's own reads ([`raft::Storage`]) plus the three writes.
pub trait Log: raft::Storage {
    /// Makes a batch durable. An error leaves the node unable to go on: what is on disk is then unknown.
    fn persist(&mut self, batch: Batch) -> Result<(), LogError>;

    /// Stores a snapshot of the state at `metadata.index`, then drops the entries before it but [`ENTRIES_KEPT`].
    fn compact(&mut self, metadata: SnapshotMetadata, data: Vec<u8>) -> Result<(), LogError>;

    /// Periodic upkeep: returns space that compaction set free.
    fn purge(&mut self) -> Result<(), LogError>;

    /// Index and data of the newest snapshot; index 0 and no data if there is none.
    fn latest_snapshot(&self) -> Result<(u64, Vec<u8>), LogError>;

    /// Bytes of entries appended since the newest snapshot.
    fn bytes_since_snapshot(&self) -> u64;

    /// True once after Raft asked for a snapshot newer than the newest: the owner takes one.
    fn take_snapshot_wanted(&mut self) -> bool;

    /// False while the disk has less than its reserve: nothing that grows the log may be accepted.
    fn has_room(&self) -> bool;
}
