//! A child process with its log; dropping it kills it with everything below it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::waiting::until;

#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program in a process group of its own, with standard output and error in a log that starts over.
    pub fn start(name: &str, command: &mut Command, logs: &Path) -> Self {
        let log = logs.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).expect("a log file");
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle of the log"))
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", command.get_program()));
        Self { name: name.to_owned(), child, log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be looked at")
    }

    pub fn assert_alive(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended ({status}) and should run on; its log:\n{}", self.name, self.log());
        }
    }

    /// SIGTERM; waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        signal(self.id(), Signal::TERM);
        until(&format!("the end of {}", self.name), || self.ended().ok_or_else(|| "it runs".to_owned()))
    }

    /// SIGKILL for the process alone: what it started finds out by itself.
    pub fn kill(&mut self) {
        signal(self.id(), Signal::KILL);
        self.child.wait().expect("a killed child can be waited for");
    }

    /// SIGKILL for the process and everything below it, as when its host loses power. Returns when all are gone.
    pub fn kill_tree(&mut self) {
        let tree = tree(self.id());
        for &id in &tree {
            signal(id, Signal::KILL);
        }
        self.child.wait().expect("a killed child can be waited for");
        until(&format!("the end of all processes of {}", self.name), || match tree.iter().find(|&&id| is_alive(id)) {
            None => Ok(()),
            Some(id) => Err(format!("process {id} lives")),
        });
    }

    /// Processes that this one started, and theirs.
    pub fn descendants(&self) -> Vec<u32> {
        tree(self.id()).split_off(1)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            for id in tree(self.id()) {
                signal(id, Signal::KILL);
            }
            // Nothing can be done about an error here, and the test has its result.
            let _ = self.child.wait();
        }
    }
}

/// Signals any process; one that has ended already is no error.
pub fn signal(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// A process and all its descendants, each before those it started.
fn tree(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .expect("/proc is mounted")
        .filter_map(|entry| {
            let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((id, fields(id)?.1))
        })
        .collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        next += 1;
    }
    tree
}

/// False for a process that is gone, or dead and only not yet waited for.
pub fn is_alive(id: u32) -> bool {
    fields(id).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// State and parent of a process. Its name, before them, may hold anything.
fn fields(id: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// A command without the settings of whoever runs the tests.
pub(super) fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if ["COORD_", "AWS_", "RUST_LOG"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&variable);
        }
    }
    command.env("TZ", "UTC");
    command
}
