//! The log as Raft reads it: everything since the last compaction, in memory.

use std::cell::Cell;
use std::collections::VecDeque;

use protobuf::Message;
use raft::eraftpb::{ConfState, Entry, HardState, SnapshotMetadata};
use raft::{Error, RaftState, StorageError};

/// Bounded by compaction: at most what lies between two snapshots, and [`super::ENTRIES_KEPT`].
pub struct Mirror {
    pub hard_state: HardState,
    /// Index, term and members of the newest snapshot; index 0 = the members the node began with.
    pub snapshot: SnapshotMetadata,
    /// Index and term of the entry before the first one kept.
    truncated: (u64, u64),
    entries: VecDeque<Entry>,
    bytes_since_snapshot: u64,
    snapshot_wanted: Cell<bool>,
}

impl Mirror {
    pub fn new(voters: &[u64]) -> Self {
        let mut snapshot = SnapshotMetadata::default();
        snapshot.set_conf_state(ConfState::from((voters.to_vec(), vec![])));
        Self::restored(HardState::default(), snapshot, (0, 0), Vec::new())
    }

    pub fn restored(
        hard_state: HardState,
        snapshot: SnapshotMetadata,
        truncated: (u64, u64),
        entries: Vec<Entry>,
    ) -> Self {
        let bytes_since_snapshot = entries.iter().filter(|entry| entry.index > snapshot.index).map(size).sum();
        Self {
            hard_state,
            snapshot,
            truncated,
            entries: entries.into(),
            bytes_since_snapshot,
            snapshot_wanted: Cell::new(false),
        }
    }

    pub fn first_index(&self) -> u64 {
        self.truncated.0 + 1
    }

    pub fn last_index(&self) -> u64 {
        self.truncated.0 + self.entries.len() as u64
    }

    pub fn truncated(&self) -> (u64, u64) {
        self.truncated
    }

    pub fn bytes_since_snapshot(&self) -> u64 {
        self.bytes_since_snapshot
    }

    pub fn take_snapshot_wanted(&self) -> bool {
        self.snapshot_wanted.take()
    }

    /// Appends; entries from the first new index on are replaced.
    pub fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        assert!(first.index >= self.first_index(), "append at {} before {}", first.index, self.first_index());
        assert!(
            first.index <= self.last_index() + 1,
            "append at {} leaves a gap after {}",
            first.index,
            self.last_index()
        );
        self.entries.truncate((first.index - self.first_index()) as usize);
        for entry in entries {
            self.bytes_since_snapshot += size(entry);
            self.entries.push_back(entry.clone());
        }
    }

    /// A snapshot of our own state: entries up to `keep_after` go.
    pub fn compact(&mut self, snapshot: SnapshotMetadata, keep_after: u64) {
        self.bytes_since_snapshot = self.entries.iter().filter(|entry| entry.index > snapshot.index).map(size).sum();
        self.snapshot = snapshot;
        while self.truncated.0 < keep_after {
            let Some(entry) = self.entries.pop_front() else { break };
            self.truncated = (entry.index, entry.term);
        }
    }

    /// A snapshot from the leader: it replaces the log.
    pub fn install(&mut self, snapshot: SnapshotMetadata) {
        self.entries.clear();
        self.truncated = (snapshot.index, snapshot.term);
        self.hard_state.commit = self.hard_state.commit.max(snapshot.index);
        self.snapshot = snapshot;
        self.bytes_since_snapshot = 0;
    }

    pub fn initial_state(&self) -> RaftState {
        RaftState::new(self.hard_state.clone(), self.snapshot.get_conf_state().clone())
    }

    pub fn entries(&self, low: u64, high: u64, max_size: Option<u64>) -> raft::Result<Vec<Entry>> {
        if low < self.first_index() {
            return Err(Error::Store(StorageError::Compacted));
        }
        assert!(high <= self.last_index() + 1, "asked for entries up to {high}, the last is {}", self.last_index());
        let offset = self.first_index();
        let wanted = self.entries.range((low - offset) as usize..(high - offset) as usize);
        let mut found: Vec<Entry> = Vec::with_capacity((high - low) as usize);
        let mut bytes = 0;
        for entry in wanted {
            bytes += size(entry);
            if !found.is_empty() && max_size.is_some_and(|limit| bytes > limit) {
                break;
            }
            found.push(entry.clone());
        }
        Ok(found)
    }

    pub fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.truncated.0 {
            return Ok(self.truncated.1);
        }
        if index == self.snapshot.index {
            return Ok(self.snapshot.term);
        }
        if index < self.truncated.0 {
            return Err(Error::Store(StorageError::Compacted));
        }
        match self.entries.get((index - self.first_index()) as usize) {
            Some(entry) => Ok(entry.term),
            None => Err(Error::Store(StorageError::Unavailable)),
        }
    }

    /// The newest snapshot's metadata, if it is new enough; otherwise the owner is asked for one.
    pub fn snapshot_for(&self, request_index: u64) -> raft::Result<SnapshotMetadata> {
        if self.snapshot.index == 0 || self.snapshot.index < request_index {
            self.snapshot_wanted.set(true);
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        Ok(self.snapshot.clone())
    }
}

fn size(entry: &Entry) -> u64 {
    u64::from(entry.compute_size())
}
