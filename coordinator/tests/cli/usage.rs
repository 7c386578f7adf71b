//! Bad usage: what is said, that the exit status is 2, and that nothing is sent.

use std::sync::Arc;

use tonic::Code;

use crate::fake::{Node, lock, refusal};
use crate::run::{beside_a_worker, command, coord, coord_of, golden};

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
        &["submit", "j1", "--trainer", "translate", "--max-restarts", "-1"],
        &["submit", "j1", "--trainer", "translate", "--device", "tpu"],
        &["submit", "j1", "--trainer", "translate", "--labels", "Team=x"],
        &["submit", "j1", "--trainer", "translate", "--max-running-time", "0"],
        &["submit", "j1", "--trainer", "translate", "--async", "--stream-logs"],
        &["submit", "j1", "--trainer", "translate", "--job-dir", "ftp://host/x"],
    ])
    .await;
    golden("bad_submits", &said);
}

/// A typo after `--` would cost the job its name if it were found only when the job runs.
#[tokio::test]
async fn program_flags_that_the_trainer_refuses_are_refused_before_anything_is_sent() {
    let version = env!("CARGO_PKG_VERSION");
    let script = format!(
        "printf '%s\\n' \"$@\" > \"$here/asked\"\n\
         echo '{{\"version\": \"{version}\", \"error\": \"unknown program flag --step\", \"hint\": \"see the table\"}}'; exit 2"
    );
    let (folder, binary) = beside_a_worker(&script);
    let node = Arc::new(Node::default());
    let address = node.serve().await;
    let arguments = ["submit", "j1", "--trainer=translate", "--job-dir=s3://b/j1", "--", "--step=5", "two words"];
    let ran = coord_of(&binary, &address, &arguments).await;
    assert_eq!(
        (ran.exit, ran.stderr.as_str()),
        (Some(2), "error: cannot submit job: unknown program flag --step\nhint: see the table\n")
    );
    let asked = std::fs::read_to_string(folder.path().join("asked")).expect("the worker was asked");
    assert_eq!(asked, "check\n--trainer\ntranslate\n--job-dir\ns3://b/j1\n--\n--step=5\ntwo words\n");
    assert!(lock(&node.submits).is_empty(), "nothing may be submitted");
}

/// An old release beside the client knows no such command; it must not stop a submit.
#[tokio::test]
async fn a_worker_binary_that_cannot_check_does_not_stop_a_submit() {
    let (_folder, binary) = beside_a_worker("echo 'error: unrecognized subcommand' >&2; exit 2");
    let node = Arc::new(Node::default());
    lock(&node.submit_answers).push_back(Ok(coord_proto::v1::SubmitJobResponse::default()));
    let ran = coord_of(&binary, &node.serve().await, &["submit", "j1", "--trainer=translate"]).await;
    assert_eq!((ran.exit, lock(&node.submits).len()), (Some(0), 1), "{ran:?}");
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
        let ran = coord("127.0.0.1:1", arguments).await;
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            (ran.exit, ran.stderr.as_str()),
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

#[tokio::test]
async fn a_folder_that_was_taken_for_a_job_is_named_as_a_path() {
    let node = Arc::new(Node::default());
    let missing = refusal(Code::NotFound, "no_such_job", "there is no job golden", "");
    lock(&node.describe_answers).push_back(Err(missing));
    let mut in_this_folder = command(&node.serve().await);
    in_this_folder.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli")).args(["checkpoints", "ls", "golden"]);
    let output = in_this_folder.output().await.expect("it runs");
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (
            Some(5),
            "error: cannot find checkpoints: there is no job golden\n\
             hint: `golden` was taken for a job; for the folder write `./golden`\n"
        )
    );
}
