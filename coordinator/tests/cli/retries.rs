//! What the client does when a coordinator is not the leader, loses an answer, or breaks a stream.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use coord_proto::v1;
use tonic::{Code, Status};

use crate::fake::{Node, lock, refusal};
use crate::run::coord;

fn position(task: &str, position: u64) -> v1::LogPosition {
    v1::LogPosition { task: task.into(), attempt: 1, position }
}

fn line(task: &str, text: &str, next: u64) -> v1::LogLine {
    v1::LogLine {
        severity: "INFO".into(),
        at_millis: 1_482_641_364_000,
        task: task.into(),
        text: text.into(),
        attempt: 1,
        next: Some(position(task, next)),
    }
}

fn lines(lines: Vec<v1::LogLine>) -> v1::ReadLogsResponse {
    v1::ReadLogsResponse { lines, ..v1::ReadLogsResponse::default() }
}

/// RPC-07, the client's half: whatever happens to the answers, all tries carry one request id.
#[tokio::test]
async fn a_submit_follows_the_leader_and_keeps_its_request_id_over_all_tries() {
    let leader = Arc::new(Node::default());
    let leader_address = leader.serve().await;
    let follower = Arc::new(Node::default());
    let not_leader = || Err(refusal(Code::Unavailable, "not_leader", "this node does not lead", &leader_address));
    lock(&follower.submit_answers).extend([not_leader(), not_leader()]);
    // The leader commits, and its answer is lost.
    lock(&leader.submit_answers).extend([
        Err(refusal(Code::Unavailable, "no_quorum", "leadership was lost", "")),
        Ok(v1::SubmitJobResponse::default()),
    ]);

    let ran = coord(&follower.serve().await, &["submit", "j1", "--trainer", "translate", "--", "--steps=1"]).await;

    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert!(ran.stderr.starts_with("Job [j1] submitted successfully.\n"), "{ran:?}");
    let mut requests = lock(&follower.submits).clone();
    requests.extend(lock(&leader.submits).iter().cloned());
    assert_eq!(requests.len(), 4);
    assert!(!requests[0].request_id.is_empty());
    assert!(requests.iter().all(|request| *request == requests[0]), "{requests:?}");
}

/// JOB-03: empty arguments, spaces, quotes, leading dashes, bytes that are no text.
#[tokio::test]
async fn program_arguments_reach_the_coordinator_to_the_byte() {
    let node = Arc::new(Node::default());
    lock(&node.submit_answers).push_back(Ok(v1::SubmitJobResponse::default()));
    let odd: [&[u8]; 8] =
        [b"--steps", b"", b"two words", b"it's \"quoted\"", b"--", b"-x", "ü".as_bytes(), b"--x=\xff\xfe"];
    let mut arguments: Vec<&OsStr> = ["submit", "j1", "--trainer", "translate", "--"].map(OsStr::new).to_vec();
    arguments.extend(odd.map(OsStr::from_bytes));

    let ran = coord(&node.serve().await, &arguments).await;

    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let spec = lock(&node.submits)[0].spec.clone().expect("a spec");
    assert_eq!(spec.args.iter().map(|argument| argument.as_ref()).collect::<Vec<&[u8]>>(), odd);
}

#[tokio::test]
async fn a_broken_log_stream_goes_on_from_its_positions_without_loss_or_repeats() {
    let node = Arc::new(Node::default());
    let (master, worker) = ("master-replica-0", "worker-replica-1");
    lock(&node.log_streams).extend([
        vec![
            Ok(lines(vec![line(master, "one", 10), line(worker, "two", 7)])),
            Ok(lines(vec![line(master, "three", 20)])),
            Err(Status::unavailable("the node goes down")),
        ],
        // A stream that ends without a word of the job's end.
        vec![Ok(lines(vec![line(worker, "four", 14)]))],
        vec![
            Ok(lines(vec![line(master, "five", 30)])),
            Ok(v1::ReadLogsResponse { ended: true, phase: v1::Phase::Succeeded.into(), ..Default::default() }),
        ],
    ]);

    let ran = coord(&node.serve().await, &["logs", "j1", "-f"]).await;

    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let row = |task: &str, text: &str| format!("INFO\t2016-12-25 04:49:24 +0000\t{task}\t\t{text}\n");
    let expected: String = [(master, "one"), (worker, "two"), (master, "three"), (worker, "four"), (master, "five")]
        .map(|(task, text)| row(task, text))
        .concat();
    assert_eq!(ran.stdout, expected);
    let from: Vec<Vec<v1::LogPosition>> = lock(&node.log_reads).iter().map(|read| read.from.clone()).collect();
    assert_eq!(
        from,
        [vec![], vec![position(master, 20), position(worker, 7)], vec![position(master, 20), position(worker, 14)],]
    );
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_is_done() {
    let node = Arc::new(Node::default());
    lock(&node.delete_answers).extend([
        Err(refusal(Code::Unavailable, "no_quorum", "leadership was lost", "")),
        Err(refusal(Code::NotFound, "no_such_job", "there is no job j1", "")),
    ]);
    assert_eq!(coord(&node.serve().await, &["delete", "j1", "--yes"]).await.exit, Some(0));

    let other = Arc::new(Node::default());
    lock(&other.delete_answers).push_back(Err(refusal(Code::NotFound, "no_such_job", "there is no job j1", "")));
    let ran = coord(&other.serve().await, &["delete", "j1", "--yes"]).await;
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(5), "error: cannot delete job: there is no job j1\n"));
}
