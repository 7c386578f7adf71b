//! The `coord` command line as a user has it: run to its end, or followed while it runs.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::waiting::Deadline;

/// No command of a test may take longer.
const LIMIT: Duration = Duration::from_secs(120);

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Ended {
    command: String,
    /// Nothing if a signal ended it.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Standard output, after the check that the command did what it was asked.
    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.status, Some(0), "{self}");
        self.stdout
    }

    #[track_caller]
    pub fn json(self) -> Value {
        let text = self.done();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
    }

    /// Checks the status of a command that should not succeed, and that standard error holds all these parts.
    #[track_caller]
    pub fn refused(self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, Some(status), "{self}");
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is missing in {self}");
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, status, stdout, stderr } = self;
        write!(formatter, "`{command}`, exit status {status:?}\nstdout:\n{stdout}\nstderr:\n{stderr}")
    }
}

/// A command that runs; its output goes to files, so that it never waits for the test.
#[derive(Debug)]
pub struct Followed {
    command: String,
    child: Child,
    stdout: tempfile::NamedTempFile,
    stderr: tempfile::NamedTempFile,
}

impl Followed {
    pub(super) fn start(mut command: Command) -> Self {
        let stdout = tempfile::NamedTempFile::new().expect("a temporary file");
        let stderr = tempfile::NamedTempFile::new().expect("a temporary file");
        let handle = |file: &tempfile::NamedTempFile| file.reopen().expect("a second handle of a temporary file");
        let child = command.stdin(Stdio::piped()).stdout(handle(&stdout)).stderr(handle(&stderr)).spawn();
        let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let command = words.join(" ");
        let child = child.unwrap_or_else(|error| panic!("cannot start `{command}`: {error}"));
        Self { command, child, stdout, stderr }
    }

    /// What it has written to standard output so far.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Writes a line to its standard input.
    pub fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("standard input is a pipe");
        writeln!(stdin, "{line}").unwrap_or_else(|error| panic!("`{}` reads no more: {error}", self.command));
    }

    /// Closes its standard input and waits for its end.
    pub fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let deadline = Deadline::after(LIMIT);
        let status = loop {
            match self.child.try_wait().expect("a child can be looked at") {
                Some(status) => break status.code(),
                None if deadline.is_over() => {
                    // Killed by the drop.
                    panic!("`{}` has not ended within {LIMIT:?}\n{}\n{}", self.command, self.stdout(), self.stderr());
                }
                None => deadline.pause(),
            }
        };
        Ended { command: self.command.clone(), status, stdout: self.stdout(), stderr: self.stderr() }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &tempfile::NamedTempFile) -> String {
    String::from_utf8_lossy(&std::fs::read(file.path()).unwrap_or_default()).into_owned()
}
