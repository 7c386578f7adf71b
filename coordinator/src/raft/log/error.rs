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
    #[error("data directory {} is in use by another process", folder.display())]
    Locked { folder: PathBuf },
}

impl LogError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::Engine { .. } => "log_io",
            Self::Damaged { .. } | Self::DamagedSnapshot { .. } | Self::Gap { .. } => "log_damaged",
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
            | Self::OtherNode { .. }
            | Self::OtherMembers { .. } => false,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Damaged { file: damaged, .. } | Self::DamagedSnapshot { file: damaged, .. } => Some(replace(damaged)),
            Self::Gap { folder, .. } => Some(replace(folder)),
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

    pub(super) fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source }
    }
}

fn replace(damaged: &Path) -> String {
    let folder = damaged.ancestors().nth(2).unwrap_or(damaged).display();
    format!(
        "nothing was changed on disk; restore {folder} from a backup, or, if all other nodes run and agree, \
         `mv {folder} {folder}.damaged` and start this node again: it receives everything from the leader"
    )
}
