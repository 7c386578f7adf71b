//! The log on disk: `raft-engine` for entries and hard state, files for snapshots.

use std::fs::File;
use std::path::{Path, PathBuf};

use raft::eraftpb::{Entry, HardState, Snapshot, SnapshotMetadata};
use raft::{GetEntriesContext, RaftState};
use raft_engine::{Command, Config, Engine, LogBatch, MessageExt, ReadableSize, RecoveryMode};

use super::mirror::Mirror;
use super::{Batch, ENTRIES_KEPT, Log, LogError, tail};
use crate::raft::snapshot::SnapshotFiles;

/// The engine can hold many groups; we have one.
const GROUP: u64 = 1;
const HARD_STATE: &[u8] = b"hard_state";
const SNAPSHOT: &[u8] = b"snapshot";
const TRUNCATED: &[u8] = b"truncated";
const NODE: &[u8] = b"node";

/// Below this much free space nothing is accepted that grows the log.
const DISK_RESERVE_BYTES: u64 = 64 << 20;

struct Entries;

impl MessageExt for Entries {
    type Entry = Entry;

    fn index(entry: &Entry) -> u64 {
        entry.index
    }
}

pub struct DiskLog {
    mirror: Mirror,
    engine: Engine,
    snapshots: SnapshotFiles,
    folder: PathBuf,
}

impl DiskLog {
    /// Opens `data_dir`, or begins it with these members. Unfinished ends of a crash are cut and logged; damage,
    /// another node's data and other members are refused.
    pub fn open(data_dir: &Path, node: u64, voters: &[u64]) -> Result<Self, LogError> {
        let folder = data_dir.join("raft");
        std::fs::create_dir_all(data_dir).map_err(LogError::io("create", data_dir))?;
        for cut in tail::repair(&folder)? {
            tracing::warn!(file = %cut.file.display(), offset = cut.offset, "cut an unfinished record off the raft log");
        }
        let snapshots = SnapshotFiles::open(&data_dir.join("snapshots"))?;
        let engine = open_engine(&folder)?;
        let mirror = restore(&engine, &folder, node, voters)?;
        // The two folders may be new: their names must be durable before anything in them is promised.
        let parent = File::open(data_dir).map_err(LogError::io("open", data_dir))?;
        parent.sync_all().map_err(LogError::io("sync", data_dir))?;
        if mirror.snapshot.index > 0 {
            // Damage shows now, not when a follower needs the file.
            snapshots.read(mirror.snapshot.index)?;
        }
        Ok(Self { mirror, engine, snapshots, folder })
    }

    /// True once the node has voted or taken an entry: from then on others rely on what is here.
    pub fn is_used(&self) -> bool {
        self.mirror.hard_state.term > 0
    }

    fn write(&self, batch: &mut LogBatch, operation: &'static str) -> Result<(), LogError> {
        self.engine.write(batch, true).map(drop).map_err(|source| self.failed(operation, source))
    }

    fn failed(&self, operation: &'static str, source: raft_engine::Error) -> LogError {
        LogError::Engine { operation, folder: self.folder.clone(), source }
    }
}

fn open_engine(folder: &Path) -> Result<Engine, LogError> {
    let config = Config {
        dir: folder.display().to_string(),
        recovery_mode: RecoveryMode::AbsoluteConsistency,
        target_file_size: ReadableSize::mb(8),
        purge_threshold: ReadableSize::mb(64),
        enable_log_recycle: false,
        ..Config::default()
    };
    Engine::open(config).map_err(|source| LogError::Engine { operation: "open", folder: folder.to_owned(), source })
}

/// Reads back what lies on disk; a new directory gets its first record here.
fn restore(engine: &Engine, folder: &Path, node: u64, voters: &[u64]) -> Result<Mirror, LogError> {
    let failed = |source| LogError::Engine { operation: "read", folder: folder.to_owned(), source };
    let Some(owner) = engine.get(GROUP, NODE) else {
        let mirror = Mirror::new(voters);
        let mut batch = LogBatch::default();
        batch.put(GROUP, NODE.to_vec(), node.to_be_bytes().to_vec()).map_err(failed)?;
        batch.put_message(GROUP, SNAPSHOT.to_vec(), &mirror.snapshot).map_err(failed)?;
        engine.write(&mut batch, true).map_err(failed)?;
        return Ok(mirror);
    };
    let owner = owner.try_into().map(u64::from_be_bytes).unwrap_or_default();
    if owner != node {
        return Err(LogError::OtherNode { folder: folder.to_owned(), expected: owner, got: node });
    }
    let hard_state = engine.get_message::<HardState>(GROUP, HARD_STATE).map_err(failed)?.unwrap_or_default();
    let snapshot = engine.get_message::<SnapshotMetadata>(GROUP, SNAPSHOT).map_err(failed)?.unwrap_or_default();
    let truncated = engine.get_message::<SnapshotMetadata>(GROUP, TRUNCATED).map_err(failed)?.unwrap_or_default();
    let mut known = snapshot.get_conf_state().get_voters().to_vec();
    let mut given = voters.to_vec();
    known.sort_unstable();
    given.sort_unstable();
    if known != given {
        return Err(LogError::OtherMembers { folder: folder.to_owned(), expected: known, got: given });
    }
    let mut entries = Vec::new();
    if let (Some(first), Some(last)) = (engine.first_index(GROUP), engine.last_index(GROUP)) {
        let begin = first.max(truncated.index + 1);
        if begin != truncated.index + 1 && begin <= last {
            return Err(LogError::Gap { folder: folder.to_owned(), snapshot: snapshot.index, first, last });
        }
        engine.fetch_entries_to::<Entries>(GROUP, begin, last + 1, None, &mut entries).map_err(failed)?;
    }
    Ok(Mirror::restored(hard_state, snapshot, (truncated.index, truncated.term), entries))
}

impl Log for DiskLog {
    fn persist(&mut self, batch: Batch) -> Result<(), LogError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut record = LogBatch::default();
        let installed = match batch.snapshot {
            None => None,
            Some(mut snapshot) => {
                let data = snapshot.take_data();
                let metadata = snapshot.take_metadata();
                self.snapshots.write(&metadata, &data)?;
                // Also what lies beyond the snapshot goes: it was not the leader's.
                record.add_command(GROUP, Command::Compact { index: self.mirror.last_index().max(metadata.index) + 1 });
                put_snapshot(&mut record, &metadata, (metadata.index, metadata.term))
                    .map_err(|source| self.failed("encode", source))?;
                Some(metadata)
            }
        };
        record.add_entries::<Entries>(GROUP, &batch.entries).map_err(|source| self.failed("encode", source))?;
        let mut hard_state = batch.hard_state.unwrap_or_else(|| self.mirror.hard_state.clone());
        if let Some(metadata) = &installed {
            hard_state.commit = hard_state.commit.max(metadata.index);
        }
        record.put_message(GROUP, HARD_STATE.to_vec(), &hard_state).map_err(|source| self.failed("encode", source))?;
        self.write(&mut record, "append")?;
        if let Some(metadata) = installed {
            self.snapshots.remove_before(metadata.index);
            self.mirror.install(metadata);
        }
        self.mirror.append(&batch.entries);
        self.mirror.hard_state = hard_state;
        Ok(())
    }

    fn compact(&mut self, metadata: SnapshotMetadata, data: Vec<u8>) -> Result<(), LogError> {
        self.snapshots.write(&metadata, &data)?;
        let keep_after = metadata.index.saturating_sub(ENTRIES_KEPT).max(self.mirror.truncated().0);
        let term = raft::Storage::term(self, keep_after).unwrap_or_default();
        let mut record = LogBatch::default();
        put_snapshot(&mut record, &metadata, (keep_after, term)).map_err(|source| self.failed("encode", source))?;
        record.add_command(GROUP, Command::Compact { index: keep_after + 1 });
        // What a snapshot holds is committed; Raft refuses to start from a commit index behind it.
        let mut hard_state = self.mirror.hard_state.clone();
        hard_state.commit = hard_state.commit.max(metadata.index);
        record.put_message(GROUP, HARD_STATE.to_vec(), &hard_state).map_err(|source| self.failed("encode", source))?;
        self.write(&mut record, "compact")?;
        self.snapshots.remove_before(metadata.index);
        self.mirror.compact(metadata, keep_after);
        self.mirror.hard_state = hard_state;
        Ok(())
    }

    fn purge(&mut self) -> Result<(), LogError> {
        self.engine.purge_expired_files().map(drop).map_err(|source| self.failed("purge", source))
    }

    fn latest_snapshot(&self) -> Result<(u64, Vec<u8>), LogError> {
        match self.mirror.snapshot.index {
            0 => Ok((0, Vec::new())),
            index => Ok((index, self.snapshots.read(index)?)),
        }
    }

    fn bytes_since_snapshot(&self) -> u64 {
        self.mirror.bytes_since_snapshot()
    }

    fn take_snapshot_wanted(&mut self) -> bool {
        self.mirror.take_snapshot_wanted()
    }

    fn has_room(&self) -> bool {
        match rustix::fs::statvfs(&self.folder) {
            Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize) >= DISK_RESERVE_BYTES,
            // A file system that cannot tell shall not stop the node; a failing write will.
            Err(_) => true,
        }
    }
}

fn put_snapshot(
    record: &mut LogBatch,
    metadata: &SnapshotMetadata,
    (index, term): (u64, u64),
) -> raft_engine::Result<()> {
    let mut truncated = SnapshotMetadata::default();
    truncated.set_index(index);
    truncated.set_term(term);
    record.put_message(GROUP, SNAPSHOT.to_vec(), metadata)?;
    record.put_message(GROUP, TRUNCATED.to_vec(), &truncated)
}

impl raft::Storage for DiskLog {
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
        let metadata = self.mirror.snapshot_for(request_index)?;
        let data = self
            .snapshots
            .read(metadata.index)
            .map_err(|error| raft::Error::Store(raft::StorageError::Other(Box::new(error))))?;
        let mut snapshot = Snapshot::default();
        snapshot.set_metadata(metadata);
        snapshot.set_data(data.into());
        Ok(snapshot)
    }
}
