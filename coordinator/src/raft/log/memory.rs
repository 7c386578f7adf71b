//! A log in memory, for simulation and tests: survives a simulated restart by being kept.

use raft::eraftpb::{Entry, Snapshot, SnapshotMetadata};
use raft::{GetEntriesContext, RaftState};

use super::mirror::Mirror;
use super::{Batch, ENTRIES_KEPT, Log, LogError};

pub struct MemoryLog {
    mirror: Mirror,
    snapshot_data: Vec<u8>,
    entries_kept: u64,
}

impl MemoryLog {
    pub fn new(voters: &[u64]) -> Self {
        Self { mirror: Mirror::new(voters), snapshot_data: Vec::new(), entries_kept: ENTRIES_KEPT }
    }

    /// Keeps fewer entries behind a snapshot, so that small tests reach the snapshot path.
    pub fn with_entries_kept(voters: &[u64], entries_kept: u64) -> Self {
        Self { entries_kept, ..Self::new(voters) }
    }
}

impl Log for MemoryLog {
    fn persist(&mut self, batch: Batch) -> Result<(), LogError> {
        if let Some(mut snapshot) = batch.snapshot {
            self.snapshot_data = snapshot.take_data().to_vec();
            self.mirror.install(snapshot.take_metadata());
        }
        self.mirror.append(&batch.entries);
        if let Some(hard_state) = batch.hard_state {
            self.mirror.hard_state = hard_state;
        }
        Ok(())
    }

    fn compact(&mut self, metadata: SnapshotMetadata, data: Vec<u8>) -> Result<(), LogError> {
        self.snapshot_data = data;
        let keep_after = metadata.index.saturating_sub(self.entries_kept);
        self.mirror.compact(metadata, keep_after);
        Ok(())
    }

    fn purge(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    fn latest_snapshot(&self) -> Result<(u64, Vec<u8>), LogError> {
        Ok((self.mirror.snapshot.index, self.snapshot_data.clone()))
    }

    fn bytes_since_snapshot(&self) -> u64 {
        self.mirror.bytes_since_snapshot()
    }

    fn take_snapshot_wanted(&mut self) -> bool {
        self.mirror.take_snapshot_wanted()
    }

    fn has_room(&self) -> bool {
        true
    }
}

impl raft::Storage for MemoryLog {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(self.mirror.initial_state())
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        self.mirror.entries(low, high, max_size.into())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        self.mirror.term(index)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.mirror.first_index())
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.mirror.last_index())
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.set_metadata(self.mirror.snapshot_for(request_index)?);
        snapshot.set_data(self.snapshot_data.clone().into());
        Ok(snapshot)
    }
}
