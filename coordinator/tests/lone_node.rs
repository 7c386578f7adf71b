//! One node over real gRPC with a scripted agent: a job's life, retries, restarts, logs, metrics.

mod support;

use coord_proto::detail::detail_of;
use coord_proto::v1;
use coord_proto::v1::Phase;
use coord_proto::v1::job_service_client::JobServiceClient;
use coordinator::server::Server;
use support::{Agent, describe, jobs, lone_node, submit, wait_for_phase, within};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::transport::Channel;

const STORED: &[u8] = b"2026-01-02T03:04:05.000Z\tO\tfirst\n2026-01-02T03:04:06.000Z\tE\tsecond\n";

#[tokio::test]
async fn a_job_lives_from_submit_to_succeeded() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    let submitted = client.submit_job(submit("r1", "chat")).await.expect("submit").into_inner().job.expect("a job");
    assert_eq!(submitted.phase(), Phase::Queued);
    assert_eq!(submitted.job_dir, format!("file://{}/storage/jobs/chat", folder.path().display()));

    let mut agent = Agent::attach(server.address(), "w1", 2).await;
    let launch = agent.expect_launch().await;
    let key = launch.key.expect("a key");
    assert_eq!((key.job.as_str(), key.generation, key.rank), ("chat", 1, 0));
    assert_eq!(launch.secret.len(), 64);
    agent.ready(&key).await;
    let rendezvous = agent.expect_rendezvous().await;
    assert_eq!(rendezvous.endpoints, ["127.0.0.1:9000"]);
    agent.running(&key).await;
    let running = wait_for_phase(&mut client, "chat", Phase::Running).await;
    assert_eq!(running.replicas.len(), 1);
    agent.exited(&key, "done", 0).await;
    let ended = wait_for_phase(&mut client, "chat", Phase::Succeeded).await;
    assert_eq!(ended.replicas[0].outcome, "exit 0");
    server.stop().await;
}

#[tokio::test]
async fn a_job_that_all_workers_together_cannot_hold_is_taken_with_a_warning() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    let _agent = Agent::attach(server.address(), "w1", 2).await;
    let wide = |workers| v1::SubmitJobRequest {
        request_id: format!("r{workers}"),
        spec: Some(v1::JobSpec {
            workers_min: workers,
            workers_max: workers,
            micro_batches: 8,
            ..submit("r", &format!("wide_{workers}")).spec.expect("a spec")
        }),
    };
    let fitting = client.submit_job(wide(2)).await.expect("submit").into_inner();
    assert_eq!(fitting.warnings, Vec::<String>::new());
    let too_wide = client.submit_job(wide(3)).await.expect("submit").into_inner();
    let text = "wants 3 slots, all workers it may use have 2 together; it waits for more workers";
    assert_eq!(too_wide.warnings, [text]);
    let mut too_thick = wide(1);
    too_thick.request_id = "thick".to_owned();
    let spec = too_thick.spec.as_mut().expect("a spec");
    (spec.job, spec.slots_per_worker) = ("thick".to_owned(), 3);
    let _second = Agent::attach(server.address(), "w2", 2).await;
    let too_thick = client.submit_job(too_thick).await.expect("submit").into_inner();
    let text = "wants 3 slots on one worker, all workers it may use have 4 together; it waits for more workers";
    assert_eq!(too_thick.warnings, [text]);
    server.stop().await;
}

/// RPC-07.
#[tokio::test]
async fn a_submit_that_is_sent_again_is_the_same_job() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    for _ in 0..3 {
        client.submit_job(submit("r1", "chat")).await.expect("submit");
    }
    let refused = client.submit_job(submit("r2", "chat")).await.expect_err("the id is taken");
    assert_eq!(refused.code(), tonic::Code::AlreadyExists);
    assert_eq!(detail_of(&refused).expect("a detail").code, "job_exists");
    let listed = client.list_jobs(v1::ListJobsRequest::default()).await.expect("list").into_inner();
    assert_eq!(listed.jobs.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_bad_job_id_is_refused_with_a_better_one() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let refused = jobs(&server).await.submit_job(submit("r1", "my-job")).await.expect_err("refused");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert_eq!(detail_of(&refused).expect("a detail").hint, "use `my_job`");
    let missing = jobs(&server).await.describe_job(v1::DescribeJobRequest { job: "none".to_owned() }).await;
    let missing = missing.expect_err("no such job");
    assert_eq!(
        (missing.code(), detail_of(&missing).expect("a detail").code.as_str()),
        (tonic::Code::NotFound, "no_such_job")
    );
    server.stop().await;
}

#[tokio::test]
async fn a_restart_keeps_jobs_and_goes_on_with_them() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    client.submit_job(submit("r1", "chat")).await.expect("submit");
    client.submit_job(submit("r2", "other")).await.expect("submit");
    client.cancel_job(v1::CancelJobRequest { job: "other".to_owned() }).await.expect("cancel");
    let before = describe(&mut client, "other").await;
    server.stop().await;

    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    assert_eq!(describe(&mut client, "other").await, before);
    let mut agent = Agent::attach(server.address(), "w1", 1).await;
    assert_eq!(agent.expect_launch().await.key.expect("a key").job, "chat");
    server.stop().await;
}

/// A node with one agent that runs the job `chat`.
async fn running_chat(folder: &TempDir) -> (Server, JobServiceClient<Channel>, Agent, v1::ReplicaKey) {
    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    client.submit_job(submit("r1", "chat")).await.expect("submit");
    let mut agent = Agent::attach(server.address(), "w1", 1).await;
    let key = agent.run_next().await;
    (server, client, agent, key)
}

/// What a finished job reached is a fact, although gauges go with the leader that heard them.
#[tokio::test]
async fn a_finished_job_shows_its_last_step_and_loss_after_a_restart() {
    let folder = TempDir::new().expect("folder");
    let (server, mut client, mut agent, key) = running_chat(&folder).await;
    let exited = v1::ReplicaExited {
        code: Some(0),
        cause: "done".to_owned(),
        last_step: 300,
        steps: 400,
        loss: Some(2.5),
        ..Default::default()
    };
    agent.fact(&key, v1::fact::Fact::Exited(exited)).await;
    wait_for_phase(&mut client, "chat", Phase::Succeeded).await;
    server.stop().await;

    let server = lone_node(folder.path()).await;
    let chat = describe(&mut jobs(&server).await, "chat").await;
    let progress = chat.progress.expect("what is known");
    assert_eq!((progress.step, progress.steps, progress.loss), (300, 400, 2.5));
    assert_eq!(progress.at_millis, chat.ended_millis);
    let listed = jobs(&server).await.list_jobs(v1::ListJobsRequest::default()).await.expect("list").into_inner();
    assert_eq!(listed.jobs[0].progress.as_ref().map(|progress| progress.step), Some(300));
    server.stop().await;
}

/// RFT-06, and a log that is gone as a whole.
#[tokio::test]
async fn a_used_directory_without_its_log_or_of_another_node_is_refused() {
    let folder = TempDir::new().expect("folder");
    lone_node(folder.path()).await.stop().await;
    let data_dir = folder.path().display().to_string();

    let other = support::settings(folder.path(), |flags| flags.node_id = Some("2".to_owned()));
    let refused = refusal(&other).await;
    assert!(refused.contains(&format!("{data_dir} belongs to node 1, got `--node-id 2`")), "{refused}");

    let log = folder.path().join("raft");
    let files: Vec<_> = std::fs::read_dir(&log).expect("list").map(|entry| entry.expect("entry").path()).collect();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "raftlog")) {
        std::fs::write(file, []).expect("empty");
    }
    for _ in 0..2 {
        let refused = refusal(&support::settings(folder.path(), |_| ())).await;
        assert!(refused.contains("was used before") && refused.contains(&log.display().to_string()), "{refused}");
        assert!(refused.contains("from a backup") && refused.contains("the list of jobs is lost"), "{refused}");
    }
    std::fs::remove_dir_all(&log).expect("remove");
    assert!(refusal(&support::settings(folder.path(), |_| ())).await.contains("was used before"));
}

/// A directory that an older version used has no identity yet.
#[tokio::test]
async fn a_used_directory_without_an_identity_gets_one_quietly() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    jobs(&server).await.submit_job(submit("r1", "chat")).await.expect("submit");
    server.stop().await;
    std::fs::remove_file(folder.path().join("node.json")).expect("remove");
    let server = lone_node(folder.path()).await;
    describe(&mut jobs(&server).await, "chat").await;
    server.stop().await;
    std::fs::remove_dir_all(folder.path().join("raft")).expect("remove");
    assert!(refusal(&support::settings(folder.path(), |_| ())).await.contains("was used before"));
}

async fn refusal(settings: &coordinator::ServeSettings) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    match coordinator::server::Server::start(settings, listener).await {
        Ok(_) => panic!("it started"),
        Err(error) => format!("{error:#}"),
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_data_directory_is_refused() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let second = coordinator::server::Server::start(&support::settings(folder.path(), |_| ()), listener).await;
    let Err(error) = second else { panic!("two nodes on one directory") };
    assert!(error.to_string().contains("is in use by another process"), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn logs_come_from_the_agent_then_from_storage_and_end_with_the_job() {
    let folder = TempDir::new().expect("folder");
    let (server, mut client, mut agent, key) = running_chat(&folder).await;
    wait_for_phase(&mut client, "chat", Phase::Running).await;

    let request = v1::ReadLogsRequest {
        job: "chat".to_owned(),
        task: "master-replica-0".to_owned(),
        follow: true,
        from: Vec::new(),
    };
    let mut stream = client.read_logs(request.clone()).await.expect("read").into_inner();
    agent.answer_log(&STORED[..33], false).await;
    let first = within("a line", stream.message()).await.expect("no error").expect("a message");
    assert_eq!(first.lines.len(), 1);
    let next = first.lines[0].next.clone().expect("a position");
    assert_eq!((next.attempt, next.position), (1, 33));
    drop(stream);

    // The agent pushes, the replica ends, and the agent goes away for good.
    let chunk = folder.path().join("storage/jobs/chat/logs/master-replica-0/1/00000000000000000000.log");
    std::fs::create_dir_all(chunk.parent().expect("a folder")).expect("create");
    std::fs::write(&chunk, STORED).expect("write");
    agent.exited(&key, "done", 0).await;
    wait_for_phase(&mut client, "chat", Phase::Succeeded).await;
    drop(agent);

    // Not followed: the log ends where storage does, and a remark says that more may exist.
    let request = v1::ReadLogsRequest { from: vec![next], follow: false, ..request };
    let mut stream = client.read_logs(request).await.expect("read").into_inner();
    let mut lines = Vec::new();
    while let Some(message) = within("a message", stream.message()).await.expect("no error") {
        lines.extend(message.lines.into_iter().map(|line| (line.severity, line.text)));
        assert_eq!(message.phase, i32::from(Phase::Succeeded));
    }
    assert_eq!(lines, [("ERROR".to_owned(), "second".to_owned())]);
    server.stop().await;
}

#[tokio::test]
async fn a_followed_log_ends_with_a_job_that_ended_before() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    client.submit_job(submit("r1", "chat")).await.expect("submit");
    client.cancel_job(v1::CancelJobRequest { job: "chat".to_owned() }).await.expect("cancel");
    let request = v1::ReadLogsRequest { job: "chat".to_owned(), follow: true, ..v1::ReadLogsRequest::default() };
    let mut stream = client.read_logs(request).await.expect("read").into_inner();
    let mut lines = 0;
    let last = loop {
        let message = within("a message", stream.message()).await.expect("no error").expect("an end is said");
        lines += message.lines.len();
        if message.ended {
            break message;
        }
    };
    assert!(lines > 0, "the platform's own lines are there");
    assert_eq!((last.phase(), last.ended_by.as_str()), (Phase::Cancelled, "user"));
    server.stop().await;
}

#[tokio::test]
async fn metrics_and_readiness_tell_of_jobs_and_workers() {
    let folder = TempDir::new().expect("folder");
    let server = lone_node(folder.path()).await;
    let mut client = jobs(&server).await;
    client.submit_job(submit("r1", "chat")).await.expect("submit");
    let mut agent = Agent::attach(server.address(), "w1", 3).await;
    agent.expect_launch().await;
    let page = get(server.http_address().expect("http is on"), "/metrics").await;
    for line in [
        "coord_jobs{phase=\"PREPARING\"} 1",
        "coord_jobs{phase=\"FAILED\"} 0",
        "coord_queue_length 0",
        "coord_slots{state=\"total\"} 3",
        "coord_slots{state=\"free\"} 2",
        "coord_workers{state=\"connected\"} 1",
        "coord_raft_is_leader 1",
        "coord_invariant_violations 0",
        "# TYPE coord_jobs gauge",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
    assert!(get(server.http_address().expect("http is on"), "/readyz").await.ends_with("ready\n"));
    server.stop().await;
}

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("connect");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("receive");
    answer
}
