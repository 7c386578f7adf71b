//! Replicas of an earlier start of this agent: found by process id and start time, and ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use coord_common::rank::ReplicaKey;
use rustix::process::Signal;

use crate::launch::signal_group;

/// A file for each running replica: `<pid> <start time> <key>`.
#[derive(Debug, Clone)]
pub struct Leftovers {
    folder: PathBuf,
}

impl Leftovers {
    pub fn new(work_dir: &Path) -> io::Result<Self> {
        let folder = work_dir.join("replicas");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn path(&self, pid: u32) -> PathBuf {
        self.folder.join(pid.to_string())
    }

    pub fn note(&self, pid: u32, key: &ReplicaKey) -> io::Result<()> {
        let started = start_time(pid).unwrap_or_default();
        fs::write(self.path(pid), format!("{pid} {started} {key}\n"))
    }

    pub fn forget(&self, pid: u32) {
        // A file that stays names a process that no longer matches its start time.
        let _ = fs::remove_file(self.path(pid));
    }

    /// Kills what an earlier agent left running. A process id that was given to another process since is left alone.
    pub fn end_all(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let text = fs::read_to_string(&path)?;
            let mut words = text.split_whitespace();
            let pid = words.next().and_then(|word| word.parse::<u32>().ok());
            let started = words.next().and_then(|word| word.parse::<u64>().ok());
            let key = words.next().unwrap_or("?").to_owned();
            if let (Some(pid), Some(started)) = (pid, started)
                && start_time(pid) == Some(started)
            {
                tracing::info!(pid, replica = key, "ending a replica that an earlier agent left");
                signal_group(pid, Signal::KILL);
            }
            fs::remove_file(&path)?;
        }
        Ok(())
    }
}

/// Start time in clock ticks since boot: field 22 of `/proc/<pid>/stat`, counted after the name, which may hold spaces.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use coord_common::ids::{Generation, JobId};
    use coord_common::rank::Rank;

    use super::*;

    #[test]
    fn a_leftover_is_killed_and_a_stranger_with_its_process_id_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let leftovers = Leftovers::new(folder.path()).unwrap();
        let key = ReplicaKey { job: JobId::parse("j").unwrap(), generation: Generation(1), rank: Rank(0) };
        let mut child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let mut stranger = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        leftovers.note(child.id(), &key).unwrap();
        fs::write(leftovers.path(stranger.id()), format!("{} 1 {key}\n", stranger.id())).unwrap();
        leftovers.end_all().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert_eq!(fs::read_dir(&leftovers.folder).unwrap().count(), 0);
    }
}
