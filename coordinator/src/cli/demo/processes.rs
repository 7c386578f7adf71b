//! Child processes that end with this one, and everything below them too.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::super::exit::Problem;

/// Lines of a process's log that are shown when it ends too early.
const TAIL_LINES: usize = 20;
/// Time between the polite request and the kill.
const GRACE: Duration = Duration::from_secs(5);

/// How long a killed process may take to be gone, and how often that is looked at.
const KILL_LIMIT: Duration = Duration::from_secs(2);
const KILL_LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A child with its own log file. Dropping it kills it and all its descendants.
pub struct Process {
    pub name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program in a process group of its own: Ctrl-C on the terminal reaches this process alone, which then
    /// ends the others in order.
    pub fn start(name: &str, program: &Path, arguments: Vec<OsString>, logs: &Path) -> Result<Self, Problem> {
        let log = logs.join(format!("{name}.log"));
        let file = File::create(&log)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        // Settings of the user's own cluster must not leak into this one.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("COORD_") {
                command.env_remove(variable);
            }
        }
        let child =
            command.spawn().map_err(|error| Problem::usage(format!("cannot start {}: {error}", program.display())))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// An error if the process, which should run on, has ended.
    pub fn check_alive(&mut self) -> Result<(), Problem> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.ended_early(&status.to_string())),
        }
    }

    /// Waits for a process that is meant to end by itself.
    pub async fn finish(mut self) -> Result<(), Problem> {
        let status = self.child.wait().await?;
        if status.success() { Ok(()) } else { Err(self.ended_early(&status.to_string())) }
    }

    fn ended_early(&self, status: &str) -> Problem {
        let text = std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n  ");
        Problem::failed(format!("{} ended ({status}); its last lines:\n  {tail}", self.name))
            .hint(format!("the whole log is {}", self.log.display()))
    }

    /// Kills the process with everything below it, as a power failure of its host would.
    pub fn kill_tree(&mut self) {
        let Some(root) = self.child.id() else { return };
        let tree = tree(root);
        // The root first: what is dead starts nothing new.
        for &pid in &tree {
            // An error means that it has ended already.
            let _ = kill_process(pid, Signal::KILL);
        }
        // A killed process ends a moment later; whoever called may count on its end.
        let deadline = Instant::now() + KILL_LIMIT;
        while tree.iter().any(|&pid| runs(pid)) && Instant::now() < deadline {
            std::thread::sleep(KILL_LOOK_INTERVAL);
        }
    }

    /// Asks the process to end, waits a little, and lets `Drop` do the rest.
    pub async fn end(mut self) {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id as i32)) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_tree();
    }
}

/// A process and all its descendants, each before those it started.
fn tree(root: u32) -> Vec<Pid> {
    let parents = parents();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    tree.into_iter().filter_map(|id| Pid::from_raw(id as i32)).collect()
}

/// (process, its parent) of every process that can be seen.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pair = |entry: std::io::Result<std::fs::DirEntry>| {
        let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        Some((id, parent_in(&stat)?))
    };
    entries.filter_map(pair).collect()
}

/// False for a process that is gone, or dead and only not yet waited for.
fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The parent in a line of `/proc/ID/stat`: the second field after the name, which may itself hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_program_name() {
        assert_eq!(parent_in("42 (a) b) (c) S 7 42 42 0"), Some(7));
        assert_eq!(parent_in("42 (cut"), None);
    }

    #[tokio::test]
    async fn nothing_below_a_dropped_process_goes_on() {
        let folder = tempfile::tempdir().expect("a directory");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().await.expect("mkfifo");
        assert!(made.success());
        // The grandchild holds the pipe open for as long as it lives.
        let script = format!("(echo up; exec sleep 600) > {} & wait", pipe.display());
        let process =
            Process::start("shell", Path::new("/bin/sh"), vec!["-c".into(), script.into()], folder.path()).expect("sh");
        let reader = tokio::fs::File::open(&pipe).await.expect("the pipe");
        let mut lines = BufReader::new(reader).lines();
        assert_eq!(lines.next_line().await.expect("a line").as_deref(), Some("up"));
        drop(process);
        assert_eq!(lines.next_line().await.expect("the end"), None);
    }

    #[tokio::test]
    async fn a_process_that_ends_early_is_reported_with_its_last_lines() {
        let folder = tempfile::tempdir().expect("a directory");
        let script = "echo no room >&2; exit 3";
        let process = Process::start("worker-1", Path::new("/bin/sh"), vec!["-c".into(), script.into()], folder.path())
            .expect("sh");
        let problem = process.finish().await.expect_err("status 3");
        assert_eq!(problem.to_string(), "worker-1 ended (exit status: 3); its last lines:\n  no room");
    }
}
