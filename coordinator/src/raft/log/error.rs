//! What can go wrong with the log of a node, and what to do about it.

use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum LogError {
    #[error("{operation} {}: {source}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: std::io::Error },
    #[error("raft log file {} is damaged at byte {offset}: {found}", file.display())]
    Damaged { file: PathBuf, offset: u64, found: &'static str },
    #[error("snapshot file {} is damaged: {found}", file.display())]
    DamagedSnapshot { file: PathBuf, found: &'static str },
    #[error("{operation} in raft log {}: {source}", folder.display())]
    Engine { operation: &'static str, folder: PathBuf, source: raft_engine::Error },
    #[error("raft log {} lacks entries: snapshot at {snapshot}, entries {first} to {last}", folder.display())]
    Gap { folder: PathBuf, snapshot: u64, first: u64, last: u64 },
    #[error("data directory {} belongs to node {expected}, got `--node-id {got}`", folder.display())]
    OtherNode { folder: PathBuf, expected: u64, got: u64 },
    #[error("data directory {} has the members {expected:?}, got {got:?}", folder.display())]
    OtherMembers { folder: PathBuf, expected: Vec<u64>, got: Vec<u64> },
    #[error("{} cannot be read: {found}", file.display())]
    Identity { file: PathBuf, found: String },
    #[error("data directory {} was used before, and its raft log in {} is empty", data_dir.display(), data_dir.join("raft").display())]
    Emptied { data_dir: PathBuf },
    #[error("data directory {} is in use by another process", folder.display())]
    Locked { folder: PathBuf },
}

impl LogError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::Engine { .. } => "log_io",
            Self::Damaged { .. }
            | Self::DamagedSnapshot { .. }
            | Self::Gap { .. }
            | Self::Identity { .. }
            | Self::Emptied { .. } => "log_damaged",
            Self::OtherNode { .. } | Self::OtherMembers { .. } => "wrong_data_dir",
            Self::Locked { .. } => "data_dir_locked",
        }
    }

    /// All of them need a human first.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Locked { .. } => true,
            Self::Io { .. }
            | Self::Engine { .. }
            | Self::Damaged { .. }
            | Self::DamagedSnapshot { .. }
            | Self::Gap { .. }
            | Self::Identity { .. }
            | Self::Emptied { .. }
            | Self::OtherNode { .. }
            | Self::OtherMembers { .. } => false,
        }
    }

    /// `alone`: the node is the only member of its cluster, so nobody else has what it lost.
    pub fn hint(&self, alone: bool) -> Option<String> {
        match self {
            Self::Damaged { file, .. } | Self::DamagedSnapshot { file, .. } => {
                Some(lost(file.ancestors().nth(2).unwrap_or(file), alone))
            }
            Self::Gap { folder, .. } => Some(lost(folder.parent().unwrap_or(folder), alone)),
            Self::Identity { file, .. } => Some(lost(file.parent().unwrap_or(file), alone)),
            Self::Emptied { data_dir } => Some(lost(data_dir, alone)),
            Self::OtherNode { .. } => Some("give each node its own `--data-dir`".to_owned()),
            Self::OtherMembers { .. } => Some(
                "start with the same members in `--peers`; their addresses may change, their numbers not".to_owned(),
            ),
            Self::Locked { .. } => Some("stop the other `coord serve`, or give another `--data-dir`".to_owned()),
            Self::Io { .. } | Self::Engine { .. } => {
                Some("check the disk and its free space, then start again".to_owned())
            }
        }
    }

    pub(in crate::raft) fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source }
    }
}

/// What to do about a data directory that has lost what it held.
pub fn lost(data_dir: &Path, alone: bool) -> String {
    let folder = data_dir.display();
    if alone {
        return format!(
            "restore the whole of {folder} from a backup of the stopped node; without one, `mv {folder} {folder}.lost` \
             and start again: the list of jobs is lost then, their checkpoints and logs in storage stay"
        );
    }
    format!(
        "an older copy of {folder} is no help, it has forgotten votes and entries; see with `coord members` that all \
         other nodes run, then `mv {folder} {folder}.lost` and start this node once with `--rejoin`: it receives \
         everything from the leader, and votes when it has it"
    )
}
