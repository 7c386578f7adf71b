//! The demonstration when something goes wrong: it says what, and leaves no process behind.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::run::beside_a_worker;

/// A directory with `coord`, ready to start the demonstration, and a worker binary that does what `script` says.
fn installed(script: &str) -> (TempDir, Command) {
    let (folder, coord) = beside_a_worker(script);
    let mut command = Command::new(&coord);
    command.args(["demo", "--keep"]).arg(folder.path().join("kept")).env("TZ", "UTC").kill_on_drop(true);
    (folder, command)
}

#[tokio::test]
async fn a_part_that_ends_early_is_named_with_its_last_lines_and_its_log() {
    let table = [
        ("echo no dialogues >&2; exit 3", "dialogs ended (exit status: 3); its last lines:\n  no dialogues"),
        (
            "case $1 in dialogs) exit 0;; esac; echo no slots >&2; exit 4",
            "worker-1 ended (exit status: 4); its last lines:\n  no slots",
        ),
    ];
    for (script, expected) in table {
        let (_folder, mut command) = installed(script);
        let output = command.output().await.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("hint: the whole log is "), "{said}");
    }
}

#[tokio::test]
async fn ctrl_c_ends_the_coordinator_the_workers_and_their_replicas() {
    // Each worker notes itself and a child of its own, which stands for a replica, then says so through a pipe.
    let script = "case $1 in dialogs) exit 0;; esac\nsleep 600 &\necho $$ $! > \"$here/up\"\nwait";
    let (folder, mut command) = installed(script);
    let pipe = folder.path().join("up");
    assert!(Command::new("mkfifo").arg(&pipe).status().await.expect("mkfifo").success());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let demo = Pid::from_raw(child.id().expect("it lives") as i32).expect("not 0");

    // Kept open for both ways, so that the end of one writer is not the end of the input.
    let both = std::fs::File::options().read(true).write(true).open(&pipe).expect("the pipe");
    let mut lines = BufReader::new(tokio::fs::File::from_std(both)).lines();
    let mut ids = String::new();
    for _ in 0..2 {
        ids.push_str(&lines.next_line().await.expect("a line").expect("two workers"));
        ids.push(' ');
    }
    kill_process(demo, Signal::INT).expect("it can be signalled");

    assert_eq!(child.wait().await.expect("it ends").code(), Some(130));
    for id in ids.split_whitespace() {
        assert!(ended(id), "process {id} goes on");
    }
    assert!(folder.path().join("kept/logs/coordinator.log").is_file());
}

/// A killed process that nobody has waited for yet is a zombie, and that counts as ended.
fn ended(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}
