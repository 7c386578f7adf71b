//! Many jobs on few slots, and one submit that is sent twice.

use coord_proto::v1;
use coord_proto::v1::job_service_client::JobServiceClient;
use coord_tests::cluster::{Cluster, Layout};
use serde_json::Value;

#[test]
fn six_gangs_at_once_on_one_host_never_clash_over_a_port() {
    // DST-01. COORD_TEST_ROUNDS=20 plays the whole case; a stranger holds the port that such programs listen on.
    let rounds = std::env::var("COORD_TEST_ROUNDS").map_or(4, |rounds| rounds.parse().expect("a number of rounds"));
    let _stranger = std::net::TcpListener::bind("0.0.0.0:29500");
    let cluster = Cluster::start(Layout::workers(&[12]));
    let program = cluster.dialogues().flags(20);
    for round in 1..=rounds {
        let jobs: Vec<String> = (1..=6).map(|number| format!("gang_{round}_{number}")).collect();
        for job in &jobs {
            cluster.submit(job, &["--workers", "2"], &program);
        }
        for job in &jobs {
            assert_eq!(cluster.wait(job).done(), "SUCCEEDED\n");
            let described = cluster.describe(job);
            assert_eq!((&described["generation"], &described["restarts"]), (&1.into(), &0.into()), "{described:#}");
        }
    }
}

#[test]
fn a_gang_that_does_not_fit_waits_with_a_reason_and_runs_later() {
    // SCH-09.
    let cluster = Cluster::start(Layout::workers(&[2, 2]));
    let dialogues = cluster.dialogues();
    cluster.submit("one", &["--workers", "3"], &dialogues.flags(0));
    cluster.submit("two", &["--workers", "3"], &dialogues.flags(40));
    cluster.until("one", "running", |seen| seen["state"] == "RUNNING");
    let waiting = cluster.describe("two");
    assert_eq!((&waiting["state"], &waiting["replicas"]), (&"QUEUED".into(), &Value::Array(Vec::new())), "{waiting:#}");
    let why = cluster.coord(&["why", "two", "--output", "json"]).json();
    assert_eq!(why["state"], "QUEUED");
    let text = why["reasons"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains('3') && text.contains('1') && text.contains("slots"), "{why:#}");
    assert_eq!(why["reasons"][1]["text"], "the slots are held by one", "{why:#}");
    cluster.coord(&["cancel", "one"]).done();
    assert_eq!(cluster.wait("one").status, Some(3));
    assert_eq!(cluster.wait("two").done(), "SUCCEEDED\n");
    for round in 1..=3 {
        let jobs = [2, 2, 4].map(|workers| (workers, format!("mix_{round}_{workers}"))).into_iter().enumerate();
        let jobs: Vec<(String, String)> =
            jobs.map(|(place, (workers, name))| (workers.to_string(), format!("{name}_{place}"))).collect();
        for (workers, job) in &jobs {
            cluster.submit(job, &["--workers", workers], &dialogues.flags(20));
        }
        for (_, job) in &jobs {
            assert_eq!(cluster.wait(job).done(), "SUCCEEDED\n");
        }
    }
}

#[test]
fn one_request_id_is_one_job_even_when_the_coordinator_dies_in_between() {
    // RPC-07: the client that never heard an answer sends the same request again.
    let mut cluster = Cluster::start(Layout::workers(&[1]));
    let spec = v1::JobSpec {
        job: "once".into(),
        trainer: "translate".into(),
        args: cluster.dialogues().flags(20).into_iter().map(|flag| flag.into_bytes().into()).collect(),
        workers_min: 1,
        workers_max: 1,
        slots_per_worker: 1,
        device: v1::Device::Cpu.into(),
        micro_batches: 8,
        max_running_seconds: 600,
        max_restarts: 3,
        ..v1::JobSpec::default()
    };
    let request = v1::SubmitJobRequest { request_id: uuid::Uuid::new_v4().to_string(), spec: Some(spec) };
    let first = submit(&cluster, &request).expect("accepted");
    let second = submit(&cluster, &request).expect("the same job");
    assert_eq!(first.created_millis, second.created_millis);
    cluster.kill_coordinator(0);
    cluster.start_coordinator(0);
    cluster.leader();
    let third = submit(&cluster, &request).expect("the same job");
    assert_eq!(first.created_millis, third.created_millis);
    let other = v1::SubmitJobRequest { request_id: uuid::Uuid::new_v4().to_string(), ..request };
    let refused = submit(&cluster, &other).expect_err("the name is taken by another request");
    assert_eq!(refused.code(), tonic::Code::AlreadyExists, "{refused}");
    assert_eq!(cluster.wait("once").done(), "SUCCEEDED\n");
    assert_eq!(cluster.coord(&["list", "--output", "quiet"]).done(), "once\n");
    assert_eq!(cluster.describe("once")["generation"], 1);
}

fn submit(cluster: &Cluster, request: &v1::SubmitJobRequest) -> Result<v1::Job, tonic::Status> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let url = format!("http://{}", cluster.address());
        let mut client = JobServiceClient::connect(url).await.expect("the coordinator listens");
        let answer = client.submit_job(request.clone()).await?;
        Ok(answer.into_inner().job.expect("an answer holds the job"))
    })
}
