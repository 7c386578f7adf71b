//! Which data directory this is: an identity made once, and the identities of the members that it has met.
//!
//! Raft trusts that a member remembers its votes and its log. A directory that was emptied, or exchanged for another
//! one, breaks that trust under the old number; its new identity shows it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::log::LogError;

pub const FILE: &str = "node.json";
const FORMAT: u32 = 1;

/// What the directory has promised to the other members so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nothing: the members have not all said yet that this number is free.
    New,
    /// Nothing, and it may.
    Admitted,
    /// It replaces a lost directory: it takes entries and casts no vote until it has all that the lost one had. What
    /// the lost one voted in terms up to this one is not known.
    CatchingUp { term: u64 },
    /// Votes and entries: from here on the log must not be lost.
    Used,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::New => "takes no part yet",
            Self::Admitted | Self::Used => "takes part",
            Self::CatchingUp { .. } => "without a vote until it has caught up with the leader",
        })
    }
}

/// What is remembered of another member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub identity: String,
    /// It came in the place of an earlier directory, which was lost.
    pub rejoined: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    format: u32,
    node: u64,
    identity: String,
    stage: Stage,
    members: BTreeMap<u64, Known>,
}

#[derive(Debug, Error)]
pub enum MeetError {
    #[error("node {node} is known here by another data directory than this one")]
    Other { node: u64 },
    #[error(transparent)]
    File(#[from] LogError),
}

/// Shared by the node's loop and the service for its peers. Every change is on disk when the method returns.
#[derive(Debug)]
pub struct Identity {
    file: PathBuf,
    own: String,
    record: Mutex<Record>,
}

impl Identity {
    /// What lies in `data_dir`; nothing in a new directory and in one of a version before identities.
    pub fn read(data_dir: &Path, node: u64) -> Result<Option<Self>, LogError> {
        let file = data_dir.join(FILE);
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::io("read", &file)(error)),
        };
        let record: Record = serde_json::from_slice(&text)
            .map_err(|error| LogError::Identity { file: file.clone(), found: error.to_string() })?;
        if record.format != FORMAT {
            let found = format!("format {}, this program reads {FORMAT}", record.format);
            return Err(LogError::Identity { file, found });
        }
        if record.node != node {
            return Err(LogError::OtherNode { folder: data_dir.to_owned(), expected: record.node, got: node });
        }
        Ok(Some(Self { file, own: record.identity.clone(), record: Mutex::new(record) }))
    }

    /// A new identity, durable before this node says or promises anything.
    pub fn create(data_dir: &Path, node: u64) -> Result<Self, LogError> {
        let own = uuid::Uuid::new_v4().simple().to_string();
        let members = BTreeMap::new();
        let record = Record { format: FORMAT, node, identity: own.clone(), stage: Stage::New, members };
        let identity = Self { file: data_dir.join(FILE), own, record: Mutex::new(record.clone()) };
        fs::create_dir_all(data_dir).map_err(LogError::io("create", data_dir))?;
        identity.write(&record)?;
        Ok(identity)
    }

    pub fn own(&self) -> &str {
        &self.own
    }

    pub fn stage(&self) -> Stage {
        self.locked().stage
    }

    pub fn reach(&self, stage: Stage) -> Result<(), LogError> {
        let mut record = self.locked();
        if record.stage != stage {
            let changed = Record { stage, ..record.clone() };
            self.write(&changed)?;
            *record = changed;
        }
        Ok(())
    }

    pub fn known(&self, member: u64) -> Option<Known> {
        self.locked().members.get(&member).cloned()
    }

    /// A member shows its identity: the first one is remembered for ever, another one is refused. With `replace` it
    /// takes the place of the one that was lost. True if it did so now.
    pub fn meet(&self, member: u64, identity: &str, replace: bool) -> Result<bool, MeetError> {
        let mut record = self.locked();
        let known = record.members.get(&member);
        if known.is_some_and(|known| known.identity == identity) {
            return Ok(false);
        }
        let rejoined = known.is_some();
        if rejoined && !replace {
            return Err(MeetError::Other { node: member });
        }
        let mut changed = record.clone();
        changed.members.insert(member, Known { identity: identity.to_owned(), rejoined });
        self.write(&changed)?;
        *record = changed;
        Ok(rejoined)
    }

    fn locked(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, record: &Record) -> Result<(), LogError> {
        let unfinished = self.file.with_extension("json.unfinished");
        let mut text = serde_json::to_vec_pretty(record).expect("a record is plain data");
        text.push(b'\n');
        let mut file = File::create(&unfinished).map_err(LogError::io("create", &unfinished))?;
        file.write_all(&text).map_err(LogError::io("write", &unfinished))?;
        file.sync_all().map_err(LogError::io("sync", &unfinished))?;
        fs::rename(&unfinished, &self.file).map_err(LogError::io("rename", &unfinished))?;
        let folder = self.file.parent().unwrap_or(&self.file);
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(LogError::io("sync", folder))
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn an_identity_and_whom_it_met_survive_a_restart() {
        let folder = TempDir::new().expect("folder");
        assert!(Identity::read(folder.path(), 1).expect("no file").is_none());
        let made = Identity::create(folder.path(), 1).expect("create");
        assert_eq!(made.stage(), Stage::New);
        assert!(!made.meet(2, "a", false).expect("the first"));
        made.reach(Stage::CatchingUp { term: 7 }).expect("write");
        let read = Identity::read(folder.path(), 1).expect("read").expect("a file");
        assert_eq!((read.own(), read.stage()), (made.own(), Stage::CatchingUp { term: 7 }));
        assert_eq!(read.known(2), Some(Known { identity: "a".to_owned(), rejoined: false }));
    }

    #[test]
    fn a_member_keeps_its_identity_unless_it_says_that_the_old_one_is_lost() {
        let folder = TempDir::new().expect("folder");
        let identity = Identity::create(folder.path(), 1).expect("create");
        assert!(!identity.meet(2, "a", true).expect("nothing to replace"));
        assert!(!identity.meet(2, "a", false).expect("the same"));
        assert!(matches!(identity.meet(2, "b", false), Err(MeetError::Other { node: 2 })));
        assert!(identity.meet(2, "b", true).expect("replaced"));
        assert!(!identity.meet(2, "b", true).expect("said again"));
        assert_eq!(identity.known(2), Some(Known { identity: "b".to_owned(), rejoined: true }));
        assert!(matches!(identity.meet(2, "a", false), Err(MeetError::Other { node: 2 })));
    }

    #[test]
    fn the_directory_of_another_node_and_an_unreadable_file_are_refused() {
        let folder = TempDir::new().expect("folder");
        Identity::create(folder.path(), 1).expect("create");
        assert!(matches!(Identity::read(folder.path(), 2), Err(LogError::OtherNode { expected: 1, got: 2, .. })));
        fs::write(folder.path().join(FILE), "{").expect("write");
        assert!(matches!(Identity::read(folder.path(), 1), Err(LogError::Identity { .. })));
    }
}
