//! The log on disk: what was acknowledged is there after a restart, torn ends go, damage is refused.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use raft::Storage;
use raft::eraftpb::{Entry, HardState, Snapshot, SnapshotMetadata};
use tempfile::TempDir;

use crate::raft::log::disk::DiskLog;
use crate::raft::log::{Batch, ENTRIES_KEPT, Log, LogError};

fn entry(index: u64) -> Entry {
    let mut entry = Entry::default();
    entry.set_index(index);
    entry.set_term(1);
    entry.set_data(format!("entry {index} with some text to give it a body").into_bytes().into());
    entry
}

fn append(log: &mut DiskLog, indexes: std::ops::RangeInclusive<u64>) {
    for index in indexes {
        let mut hard_state = HardState::default();
        hard_state.set_term(1);
        hard_state.set_vote(1);
        hard_state.set_commit(index - 1);
        let batch = Batch { entries: vec![entry(index)], hard_state: Some(hard_state), snapshot: None };
        log.persist(batch).expect("append");
    }
}

fn open(folder: &TempDir) -> Result<DiskLog, LogError> {
    DiskLog::open(folder.path(), 1, &[1])
}

fn newest_log_file(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("raft"))
        .expect("list")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "raftlog"))
        .collect();
    files.sort();
    files.pop().expect("a log file")
}

/// Where the last appended bytes end: the file is longer, zeros follow.
fn find(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("the text is in the file")
}

fn overwrite(file: &Path, offset: u64, bytes: &[u8]) {
    let mut opened = OpenOptions::new().write(true).open(file).expect("open");
    opened.seek(SeekFrom::Start(offset)).expect("seek");
    opened.write_all(bytes).expect("write");
}

#[test]
fn a_restart_keeps_entries_and_hard_state() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    append(&mut log, 1..=50);
    drop(log);
    let log = open(&folder).expect("open again");
    let state = log.initial_state().expect("state");
    assert_eq!((state.hard_state.term, state.hard_state.vote, state.hard_state.commit), (1, 1, 49));
    assert_eq!(state.conf_state.get_voters(), [1]);
    assert_eq!(log.last_index().expect("last"), 50);
    let entries = log.entries(1, 51, None, raft::GetEntriesContext::empty(false)).expect("entries");
    assert_eq!(entries, (1..=50).map(entry).collect::<Vec<_>>());
}

#[test]
fn entries_of_a_lost_leader_are_replaced_for_good() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    append(&mut log, 1..=10);
    let mut other = entry(6);
    other.set_term(2);
    log.persist(Batch { entries: vec![other.clone()], ..Batch::default() }).expect("append");
    drop(log);
    let log = open(&folder).expect("open again");
    assert_eq!(log.last_index().expect("last"), 6);
    assert_eq!(log.term(6).expect("term"), 2);
}

#[test]
fn a_restart_after_compaction_begins_at_the_snapshot() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    let last = ENTRIES_KEPT + 200;
    let entries: Vec<Entry> = (1..=last).map(entry).collect();
    log.persist(Batch { entries, ..Batch::default() }).expect("append");
    let mut metadata = log.initial_state().map(|state| {
        let mut metadata = SnapshotMetadata::default();
        metadata.set_conf_state(state.conf_state);
        metadata
    });
    let metadata = metadata.as_mut().expect("state");
    metadata.set_index(last - 50);
    metadata.set_term(1);
    log.compact(metadata.clone(), b"the state".to_vec()).expect("compact");
    drop(log);
    let mut log = open(&folder).expect("open again");
    assert_eq!(log.first_index().expect("first"), 151);
    assert_eq!(log.last_index().expect("last"), last);
    assert_eq!(log.latest_snapshot().expect("snapshot"), (last - 50, b"the state".to_vec()));
    assert_eq!(log.initial_state().expect("state").hard_state.commit, last - 50);
    append(&mut log, last + 1..=last + 1);
    log.purge().expect("purge");
    drop(log);
    assert_eq!(open(&folder).expect("open").last_index().expect("last"), last + 1);
}

#[test]
fn an_installed_snapshot_replaces_the_log() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    append(&mut log, 1..=10);
    let mut snapshot = Snapshot::default();
    snapshot.set_data(b"from the leader".to_vec().into());
    snapshot.mut_metadata().set_index(500);
    snapshot.mut_metadata().set_term(3);
    snapshot.mut_metadata().mut_conf_state().set_voters(vec![1]);
    log.persist(Batch { snapshot: Some(snapshot), ..Batch::default() }).expect("install");
    append(&mut log, 501..=503);
    drop(log);
    let log = open(&folder).expect("open again");
    assert_eq!((log.first_index().expect("first"), log.last_index().expect("last")), (501, 503));
    assert_eq!(log.term(500).expect("term"), 3);
    assert_eq!(log.latest_snapshot().expect("snapshot"), (500, b"from the leader".to_vec()));
}

#[test]
fn a_torn_last_record_is_cut_and_the_ones_before_it_stay() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    append(&mut log, 1..=20);
    drop(log);
    let file = newest_log_file(folder.path());
    let bytes = fs::read(&file).expect("read");
    let body = find(&bytes, "entry 20 with");
    // The page with the body never reached the disk; space allocated ahead follows.
    overwrite(&file, body as u64, &[0; 12]);
    OpenOptions::new().write(true).open(&file).expect("open").set_len(bytes.len() as u64 + 65_536).expect("grow");
    let log = open(&folder).expect("open again");
    assert_eq!(log.last_index().expect("last"), 19);
    drop(log);
    assert_eq!(open(&folder).expect("a third time").last_index().expect("last"), 19);
}

#[test]
fn a_record_cut_at_any_byte_is_repaired() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    append(&mut log, 1..=3);
    drop(log);
    let file = newest_log_file(folder.path());
    let whole = fs::read(&file).expect("read");
    for length in find(&whole, "entry 3 with") - 16..whole.len() {
        fs::write(&file, &whole[..length]).expect("write");
        let log = open(&folder).unwrap_or_else(|error| panic!("cut at {length}: {error}"));
        assert_eq!(log.last_index().expect("last"), 2, "cut at {length}");
    }
}

#[test]
fn damage_before_good_records_is_refused_and_nothing_changes() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    append(&mut log, 1..=20);
    drop(log);
    let file = newest_log_file(folder.path());
    let mut bytes = fs::read(&file).expect("read");
    let body = find(&bytes, "entry 7 with");
    bytes[body] ^= 1;
    fs::write(&file, &bytes).expect("write");
    let Err(error) = open(&folder) else { panic!("opened a damaged log") };
    let LogError::Damaged { file: named, offset, .. } = &error else { panic!("another error: {error}") };
    assert_eq!(named, &file);
    assert!((*offset as usize) < body);
    let hint = |alone| error.hint(alone).expect("a hint");
    assert!(hint(true).contains("the list of jobs is lost") && !hint(true).contains("--rejoin"), "{}", hint(true));
    assert!(hint(false).contains("--rejoin"), "{}", hint(false));
    assert!(hint(false).contains(&format!("`mv {0} {0}.lost`", folder.path().display())), "{}", hint(false));
    assert_eq!(fs::read(&file).expect("read"), bytes);
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let folder = TempDir::new().expect("folder");
    let mut log = open(&folder).expect("open");
    append(&mut log, 1..=5);
    let mut metadata = SnapshotMetadata::default();
    metadata.set_index(5);
    metadata.set_term(1);
    metadata.mut_conf_state().set_voters(vec![1]);
    log.compact(metadata, b"state".to_vec()).expect("compact");
    drop(log);
    let file = folder.path().join("snapshots/00000000000000000005.snapshot");
    let mut bytes = fs::read(&file).expect("read");
    let middle = bytes.len() - 34;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).expect("write");
    assert!(matches!(open(&folder), Err(LogError::DamagedSnapshot { .. })));
}

#[test]
fn the_data_of_another_node_or_cluster_is_refused() {
    let folder = TempDir::new().expect("folder");
    drop(open(&folder).expect("open"));
    assert!(matches!(DiskLog::open(folder.path(), 2, &[1]), Err(LogError::OtherNode { expected: 1, got: 2, .. })));
    assert!(matches!(DiskLog::open(folder.path(), 1, &[1, 2, 3]), Err(LogError::OtherMembers { .. })));
}
