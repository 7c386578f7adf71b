//! Commands that take several jobs: each has its own line, and the worst outcome is the exit status.

use std::sync::Arc;

use coord_proto::v1;
use tonic::Code;

use crate::fake::{Node, lock, refusal};
use crate::run::coord;

fn job(name: &str, phase: v1::Phase) -> v1::Job {
    let spec = v1::JobSpec { job: name.into(), ..v1::JobSpec::default() };
    v1::Job { spec: Some(spec), phase: phase.into(), ..v1::Job::default() }
}

#[tokio::test]
async fn each_cancelled_job_has_its_own_line_and_one_that_is_missing_stops_no_other() {
    let node = Arc::new(Node::default());
    let cancelled = |name: &str, phase| Ok(v1::CancelJobResponse { job: Some(job(name, phase)), already_ended: false });
    let missing = Err(refusal(Code::NotFound, "no_such_job", "there is no job b", ""));
    lock(&node.cancel_answers).extend([
        cancelled("a", v1::Phase::Cancelling),
        missing,
        cancelled("c", v1::Phase::Cancelled),
    ]);
    let ran = coord(&node.serve().await, &["cancel", "a", "b", "c", "a"]).await;
    assert_eq!(ran.exit, Some(5));
    assert_eq!(
        ran.stderr,
        "Job [a] is being cancelled; `coord wait a` waits for the end.\n\
         error: cannot cancel job: there is no job b\n\
         Job [c] is cancelled; it held no worker.\n"
    );
}

#[tokio::test]
async fn one_bad_name_refuses_all_before_anything_is_sent() {
    let node = Arc::new(Node::default());
    let ran = coord(&node.serve().await, &["delete", "a", "b-c", "--yes"]).await;
    assert_eq!((ran.exit, lock(&node.deletes).len()), (Some(2), 0), "{ran:?}");
}

#[tokio::test]
async fn removed_jobs_are_named_to_scripts_one_a_line() {
    let node = Arc::new(Node::default());
    lock(&node.delete_answers).extend((0..4).map(|_| Ok(v1::DeleteJobResponse {})));
    let address = node.serve().await;
    let quiet = coord(&address, &["delete", "a", "b", "--yes", "--output=quiet"]).await;
    assert_eq!((quiet.exit, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "a\nb\n", ""));
    let json = coord(&address, &["delete", "a", "b", "-y", "--output=json"]).await;
    assert_eq!(json.stdout, "{\"job\":\"a\",\"removed\":true}\n{\"job\":\"b\",\"removed\":true}\n");
}

#[tokio::test]
async fn wait_tells_how_each_job_ended_and_exits_by_the_worst() {
    let node = Arc::new(Node::default());
    let ended = |name: &str, phase| Ok(v1::WatchJobResponse { job: Some(job(name, phase)), version: 1 });
    lock(&node.watch_answers).extend([
        ended("a", v1::Phase::Succeeded),
        ended("b", v1::Phase::Failed),
        ended("c", v1::Phase::Cancelled),
    ]);
    let ran = coord(&node.serve().await, &["wait", "a", "b", "c"]).await;
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), "a  SUCCEEDED\nb  FAILED\nc  CANCELLED\n"), "{ran:?}");
}
