//! Bad usage: what is said, that the exit status is 2, and that nothing is sent.

use std::sync::Arc;

use crate::fake::{Node, lock};
use crate::run::{coord, golden};

/// Each command line and what it prints on standard error, one after the other.
async fn transcript(command_lines: &[&[&str]]) -> String {
    let node = Arc::new(Node::default());
    let address = node.serve().await;
    let mut transcript = String::new();
    for arguments in command_lines {
        let ran = coord(&address, arguments).await;
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        transcript.push_str(&format!("$ coord {}\n{}\n", arguments.join(" ").trim_end(), ran.stderr));
    }
    assert!(lock(&node.submits).is_empty(), "nothing may be submitted");
    assert!(lock(&node.deletes).is_empty(), "nothing may be deleted");
    transcript
}

/// JOB-01 and JOB-02, in the client.
#[tokio::test]
async fn a_bad_submit_names_what_is_wrong_and_sends_nothing() {
    let said = transcript(&[
        // A backslash followed by a space: the shell makes one argument ` --steps` of it.
        &["submit", "j1", "--workers", "2", " --steps", "10"],
        &["submit", "j1", "--workers", "2", "--steps", "10", "--trainer", "translate", "--"],
        &["submit", "j1", "--trainer", "translate", "--steps=10"],
        &["submit", "j1", "extra", "--trainer", "translate"],
        &["submit", "j1", "--workers", "2", "--", "--steps", "10"],
        &["submit", "j1", "--"],
        &["submit", "j1"],
        &["submit"],
        &["submit", "my-job", "--trainer", "translate"],
        &["submit", "9lives", "--trainer", "translate"],
        &["submit", "j1", "--trainer", "translate", "--worker", "2"],
        &["submit", "j1", "--trainer", "translate", "--workers", "9"],
        &["submit", "j1", "--trainer", "translate", "--workers", "many"],
        &["submit", "j1", "--trainer", "translate", "--workers", "4:2"],
        &["submit", "j1", "--trainer", "translate", "--device", "tpu"],
        &["submit", "j1", "--trainer", "translate", "--labels", "Team=x"],
        &["submit", "j1", "--trainer", "translate", "--max-running-time", "0"],
        &["submit", "j1", "--trainer", "translate", "--async", "--stream-logs"],
        &["submit", "j1", "--trainer", "translate", "--job-dir", "ftp://host/x"],
    ])
    .await;
    golden("bad_submits", &said);
}

#[tokio::test]
async fn other_bad_usage_is_said_in_one_form() {
    let said = transcript(&[
        &[],
        &["sumbit"],
        &["list", "--state", "DONE"],
        &["list", "--output", "yaml"],
        &["list", "--label", "team"],
        &["list", "--limit"],
        &["describe"],
        &["describe", "my-job"],
        &["describe", "a", "b"],
        &["logs", "j1", "--replica", "x"],
        &["wait", "j1", "--timeout", "soon"],
        &["delete", "j1"],
        &["workers", "--address", "https://node"],
        &["checkpoints", "ls", "my-job"],
        &["chat", "my-job"],
        &["storage", "ls", "ftp://host/x"],
        &["storage", "cp", "s3://b/x"],
        &["local", "train", "--steps=10"],
    ])
    .await;
    golden("bad_usage", &said);
}

#[tokio::test]
async fn a_missing_worker_binary_is_named_with_what_to_install() {
    for arguments in [
        &["local", "train", "--", "--steps=1"][..],
        &["data", "dialogs", "in", "out"],
        &["checkpoints", "ls", "/nowhere"],
        &["chat", "/nowhere"],
    ] {
        let folder = tempfile::tempdir().expect("a directory");
        let alone = folder.path().join("coord");
        std::fs::copy(env!("CARGO_BIN_EXE_coord"), &alone).expect("the binary can be copied");
        let output =
            tokio::process::Command::new(&alone).args(arguments).env("PATH", "").output().await.expect("it runs");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (
                Some(2),
                format!(
                    "error: coord-worker is missing: it is neither beside coord nor in PATH\n\
                     hint: install coord-worker {version} into the directory of coord\n"
                )
                .as_str()
            ),
            "{arguments:?}"
        );
    }
}
