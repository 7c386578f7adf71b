//! How commands that follow a job end, for each end of the job.

use std::process::Stdio;
use std::sync::Arc;

use coord_proto::v1;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tonic::{Code, Status};

use crate::fake::{Node, lock, refusal};
use crate::run::{command, coord, coord_reading};

fn ends() -> [(v1::Phase, &'static str, i32); 5] {
    [
        (v1::Phase::Succeeded, "", 0),
        (v1::Phase::Failed, "", 1),
        (v1::Phase::Cancelled, "user", 3),
        (v1::Phase::Cancelled, "time_limit", 4),
        (v1::Phase::Failed, "time_limit", 4),
    ]
}

fn one_line() -> v1::ReadLogsResponse {
    let line = v1::LogLine { severity: "INFO".into(), task: "service".into(), ..v1::LogLine::default() };
    v1::ReadLogsResponse { lines: vec![line], ..v1::ReadLogsResponse::default() }
}

fn removed() -> Status {
    refusal(Code::NotFound, "no_such_job", "there is no job j1", "")
}

/// JOB-09.
#[tokio::test]
async fn a_followed_log_ends_with_its_own_status_for_each_end_of_the_job() {
    for (phase, ended_by, expected) in ends() {
        let node = Arc::new(Node::default());
        let end =
            v1::ReadLogsResponse { ended: true, phase: phase.into(), ended_by: ended_by.into(), ..Default::default() };
        lock(&node.log_streams).push_back(vec![Ok(one_line()), Ok(end)]);
        let ran = coord(&node.serve().await, &["logs", "j1", "-f"]).await;
        assert_eq!(ran.exit, Some(expected), "{phase:?} by {ended_by:?}: {ran:?}");
    }
    let node = Arc::new(Node::default());
    lock(&node.log_streams).push_back(vec![Ok(one_line()), Err(removed())]);
    let ran = coord(&node.serve().await, &["logs", "j1", "-f"]).await;
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(5), "error: job j1 was removed\n"));
}

#[tokio::test]
async fn wait_and_watch_exit_by_how_the_job_ended() {
    for command in ["wait", "watch"] {
        for (phase, ended_by, expected) in ends() {
            let node = Arc::new(Node::default());
            let job = |phase: v1::Phase, ended_by: &str| v1::Job {
                phase: phase.into(),
                ended_by: ended_by.into(),
                ..v1::Job::default()
            };
            lock(&node.watch_answers).extend([
                Ok(v1::WatchJobResponse { job: Some(job(v1::Phase::Running, "")), version: 1 }),
                Ok(v1::WatchJobResponse { job: Some(job(phase, ended_by)), version: 2 }),
            ]);
            let ran = coord(&node.serve().await, &[command, "j1"]).await;
            assert_eq!(ran.exit, Some(expected), "{command}: {phase:?} by {ended_by:?}: {ran:?}");
        }
        let node = Arc::new(Node::default());
        lock(&node.watch_answers).push_back(Err(removed()));
        assert_eq!(coord(&node.serve().await, &[command, "j1"]).await.exit, Some(5), "{command}");
    }
}

#[tokio::test]
async fn ctrl_c_leaves_the_job_running_and_says_how_to_come_back() {
    let node = Arc::new(Node { hang: true, ..Node::default() });
    lock(&node.log_streams).push_back(vec![Ok(one_line())]);
    let mut child = command(&node.serve().await)
        .args(["logs", "j1", "-f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    stdout.read_line(&mut first).await.expect("a line");

    let pid = rustix::process::Pid::from_raw(child.id().expect("it runs") as i32).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it can be signalled");

    assert_eq!(child.wait().await.expect("it ends").code(), Some(130));
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).await.expect("UTF-8");
    assert_eq!(said, "\nJob [j1] goes on. Come back with `coord logs j1 -f`, or end it with `coord cancel j1`.\n");
}

/// SEQ-06, the client's half: line i answers line i, blank in gives blank out.
#[tokio::test]
async fn a_chat_without_terminal_gives_one_line_for_each_line() {
    let node = Arc::new(Node::default());
    let answer = |text: &str| Ok(v1::AskJobResponse { step: 40, text: text.into(), notes: vec![] });
    lock(&node.ask_answers).extend([answer(""), answer("first"), answer("two\nlines"), answer("")]);

    let ran = coord_reading(&node.serve().await, &["chat", "j1"], b"a\n\n  \nb\nlast").await;

    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "first\n\n\ntwo lines\n\n", ""));
    let asked: Vec<(String, bool)> = lock(&node.asks).iter().map(|ask| (ask.prompt.clone(), ask.probe)).collect();
    let expected = [("", true), ("a", false), ("b", false), ("last", false)];
    assert_eq!(asked, expected.map(|(prompt, probe)| (prompt.to_owned(), probe)));
}

#[tokio::test]
async fn a_chat_without_terminal_with_a_job_that_waits_says_so_and_why() {
    let node = Arc::new(Node::default());
    let no_checkpoint = || Err(refusal(Code::FailedPrecondition, "no_checkpoint", "no checkpoint in s3://b/x", ""));
    let reason = v1::Reason { text: "wants 1 slot, 0 free".into(), ..v1::Reason::default() };
    let job = |phase: v1::Phase, reasons| v1::Job { phase: phase.into(), reasons, ..v1::Job::default() };
    let seen = |job| Ok(v1::WatchJobResponse { job: Some(job), version: 1 });
    lock(&node.ask_answers).extend([no_checkpoint(), no_checkpoint()]);
    lock(&node.watch_answers)
        .extend([seen(job(v1::Phase::Queued, vec![reason])), seen(job(v1::Phase::Failed, vec![]))]);
    let address = node.serve().await;
    let waits = coord_reading(&address, &["chat", "j1"], b"hello\n").await;
    assert_eq!(
        (waits.exit, waits.stdout.as_str(), waits.stderr.as_str()),
        (
            Some(1),
            "",
            "error: cannot chat with job: job [j1] is QUEUED: wants 1 slot, 0 free; it answers from its first complete \
             checkpoint on\nhint: `coord watch j1` shows how far it is\n"
        )
    );
    let failed = coord_reading(&address, &["chat", "j1"], b"hello\n").await;
    assert_eq!(
        (failed.exit, failed.stderr.as_str()),
        (
            Some(1),
            "error: cannot chat with job: job [j1] is FAILED and has no complete checkpoint\n\
             hint: `coord why j1` tells how it ended\n"
        )
    );
}
