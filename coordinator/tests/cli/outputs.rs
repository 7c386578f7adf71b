//! What commands print when all goes well, and the help of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use coord_proto::v1;

use crate::fake::{Node, lock};
use crate::run::{coord, golden};

const NOBODY: &str = "127.0.0.1:1";

fn spec(job: &str) -> v1::JobSpec {
    v1::JobSpec {
        job: job.into(),
        trainer: "translate".into(),
        args: vec!["--size=64".into(), "--name=two words".into()],
        workers_min: 1,
        workers_max: 4,
        slots_per_worker: 1,
        device: v1::Device::Cpu.into(),
        micro_batches: 8,
        labels: BTreeMap::from([("team".into(), "nlp".into())]),
        max_restarts: 3,
        ..v1::JobSpec::default()
    }
}

fn replica(rank: u32, outcome: &str, consequence: bool) -> v1::Replica {
    v1::Replica {
        rank,
        name: if rank == 0 { "master-replica-0".into() } else { format!("worker-replica-{rank}") },
        worker: format!("w{rank}"),
        worker_name: format!("host-{rank}"),
        generation: 2,
        state: if outcome.is_empty() { "running".into() } else { "exited".into() },
        samples: 12_800 * (u64::from(rank) + 1),
        outcome: outcome.into(),
        consequence,
    }
}

fn checkpoint(step: u64) -> v1::CheckpointRecord {
    v1::CheckpointRecord {
        step,
        generation: 1,
        manifest_url: format!("file:///s/jobs/dialogs/train/translate.ckpt-{step}.json"),
        manifest_digest: "ab".repeat(32),
        state_digest: "0123456789abcdef".repeat(4),
        at_millis: 1_482_641_500_000,
    }
}

fn running() -> v1::Job {
    v1::Job {
        spec: Some(spec("dialogs")),
        phase: v1::Phase::Running.into(),
        created_millis: 1_482_641_364_000,
        started_millis: 1_482_641_366_000,
        generation: 2,
        replicas: vec![replica(0, "", false), replica(1, "", false)],
        progress: Some(v1::Progress {
            step: 120,
            steps: 300,
            loss: 3.21,
            learning_rate: 0.5,
            tokens_per_second: 5_123.0,
            seconds_per_step: 0.125,
            checkpoint_seconds: 0.25,
            at_millis: 1_482_641_500_000,
            ..v1::Progress::default()
        }),
        checkpoints: vec![checkpoint(50), checkpoint(100)],
        interruptions: vec![v1::Interruption {
            at_millis: 1_482_641_400_000,
            generation: 1,
            reason: "worker host-2 lost".into(),
            step_before: 60,
            step_after: 61,
            pause_millis: 340,
            over: true,
        }],
        restarts: 1,
        job_dir: "file:///s/jobs/dialogs".into(),
        ..v1::Job::default()
    }
}

/// JOB-06: worker 2 of 4 failed first, the others only followed.
fn failed() -> v1::Job {
    v1::Job {
        phase: v1::Phase::Failed.into(),
        ended_millis: 1_482_641_600_000,
        replicas: vec![replica(0, "exit 1", true), replica(1, "exit 1", true), replica(2, "exit 7", false)],
        failure: Some(v1::Failure {
            cause: "user_error".into(),
            replica: "worker-replica-2".into(),
            generation: 2,
            exit_code: Some(7),
            signal: None,
            text: "worker-replica-2 exited with status 7".into(),
            tail: "line 499\nline 500\n".into(),
        }),
        ..running()
    }
}

fn waiting() -> v1::Job {
    v1::Job {
        spec: Some(v1::JobSpec { workers_min: 2, workers_max: 2, ..spec("night") }),
        phase: v1::Phase::Queued.into(),
        reasons: vec![v1::Reason { code: "free_slots".into(), text: "2 slots wanted, 1 free".into(), at_millis: 0 }],
        created_millis: 1_482_641_364_000,
        queue_position: 2,
        job_dir: "file:///s/jobs/night".into(),
        ..v1::Job::default()
    }
}

#[tokio::test]
async fn describe_shows_everything_known_about_a_job() {
    for (name, job) in [("describe_running", running()), ("describe_failed", failed()), ("describe_queued", waiting())]
    {
        let node = Arc::new(Node::default());
        let answer = || Ok(v1::DescribeJobResponse { job: Some(job.clone()) });
        lock(&node.describe_answers).extend([answer(), answer(), answer()]);
        let address = node.serve().await;
        let table = coord(&address, &["describe", "dialogs"]).await;
        assert_eq!((table.exit, table.stderr.as_str()), (Some(0), ""));
        golden(name, &table.stdout);
        let json = coord(&address, &["describe", "dialogs", "--output", "json"]).await;
        golden(&format!("{name}_json"), &json.stdout);
        let quiet = coord(&address, &["describe", "dialogs", "--output=quiet"]).await;
        assert_eq!(quiet.stdout, format!("{}\n", job.phase().as_str_name().trim_start_matches("PHASE_")));
    }
}

#[tokio::test]
async fn list_reads_page_after_page_until_its_limit() {
    let node = Arc::new(Node::default());
    let page = |jobs: Vec<v1::Job>, next: &str| Ok(v1::ListJobsResponse { jobs, next_page_token: next.into() });
    lock(&node.list_answers).extend([page(vec![running(), waiting()], "p2"), page(vec![failed()], "")]);
    let address = node.serve().await;
    let ran = coord(&address, &["list", "--limit", "150", "--state", "running,QUEUED", "--label", "team=nlp"]).await;
    golden("list", &ran.stdout);
    let asked = lock(&node.lists).clone();
    assert_eq!(
        asked.iter().map(|ask| (ask.page_size, ask.page_token.as_str())).collect::<Vec<_>>(),
        [(100, ""), (100, "p2")]
    );
    assert_eq!(asked[0].phases, [i32::from(v1::Phase::Running), i32::from(v1::Phase::Queued)]);
    assert_eq!(asked[0].labels, BTreeMap::from([("team".into(), "nlp".into())]));

    lock(&node.list_answers).push_back(page(vec![running()], "p2"));
    let ran = coord(&address, &["list", "--limit=1", "--output=quiet"]).await;
    assert_eq!((ran.stdout.as_str(), ran.exit), ("dialogs\n", Some(0)));
}

#[tokio::test]
async fn programs_get_all_pages_of_a_list_and_no_field_that_it_does_not_carry() {
    let node = Arc::new(Node::default());
    let hundred = || vec![waiting(); 100];
    let page = |jobs: Vec<v1::Job>, next: &str| Ok(v1::ListJobsResponse { jobs, next_page_token: next.into() });
    lock(&node.list_answers).extend([page(hundred(), "p2"), page(vec![failed()], "")]);
    lock(&node.list_answers).push_back(page(vec![failed()], ""));
    let address = node.serve().await;
    let quiet = coord(&address, &["list", "--output", "quiet"]).await;
    assert_eq!((quiet.stdout.lines().count(), quiet.stdout.lines().last()), (101, Some("dialogs")));
    let json = coord(&address, &["list", "--output", "json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(listed[0]["spec"]["trainer"], "translate");
    for absent in ["/0/spec/args", "/0/checkpoints", "/0/failure/tail"] {
        assert_eq!(listed.pointer(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn why_names_every_blocker() {
    let node = Arc::new(Node::default());
    lock(&node.explain_answers).push_back(Ok(v1::ExplainJobResponse {
        phase: v1::Phase::Queued.into(),
        reasons: waiting().reasons,
        failure: None,
    }));
    lock(&node.explain_answers).push_back(Ok(v1::ExplainJobResponse {
        phase: v1::Phase::Failed.into(),
        reasons: vec![],
        failure: failed().failure,
    }));
    let address = node.serve().await;
    let waits = coord(&address, &["why", "night"]).await;
    assert_eq!(waits.stdout, "Job [night] is QUEUED.\n  2 slots wanted, 1 free\n");
    golden("why_failed", &coord(&address, &["why", "dialogs"]).await.stdout);
}

#[tokio::test]
async fn cancelling_a_job_that_has_ended_says_that_nothing_was_changed() {
    let node = Arc::new(Node::default());
    let answer = |already_ended| Ok(v1::CancelJobResponse { job: Some(failed()), already_ended });
    lock(&node.cancel_answers).extend([answer(false), answer(true)]);
    let address = node.serve().await;
    let first = coord(&address, &["cancel", "dialogs"]).await;
    assert_eq!(first.stderr, "Job [dialogs] is being cancelled; `coord wait dialogs` waits for the end.\n");
    let second = coord(&address, &["cancel", "dialogs"]).await;
    assert_eq!(second.stderr, "Job [dialogs] had ended already (FAILED); nothing was changed.\n");
    assert_eq!((first.exit, second.exit), (Some(0), Some(0)));
}

#[tokio::test]
async fn a_submit_tells_the_two_commands_that_follow_up() {
    let node = Arc::new(Node::default());
    let answer = || Ok(v1::SubmitJobResponse { job: Some(waiting()), warnings: vec!["the queue is long".into()] });
    lock(&node.submit_answers).extend([answer(), answer()]);
    let address = node.serve().await;
    let arguments = ["submit", "night", "--trainer", "translate", "--workers", "2"];
    let ran = coord(&address, &arguments).await;
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), ""));
    golden("submit", &ran.stderr);
    let quiet = coord(&address, &["submit", "night", "--unique", "--trainer=translate", "--output=quiet"]).await;
    let name = quiet.stdout.trim_end();
    assert!(name.starts_with("night_20") && name.len() == "night_20161224_203332".len(), "{name}");
    assert_eq!(quiet.stderr, "");
}

/// JOB-11, the submit side: a relative job directory is made absolute, and the user is warned.
#[tokio::test]
async fn a_job_directory_on_this_machine_is_absolute_and_warned_about() {
    let node = Arc::new(Node::default());
    lock(&node.submit_answers).push_back(Ok(v1::SubmitJobResponse::default()));
    let arguments = ["submit", "j1", "--trainer=translate", "--job-dir", "./out", "--", "--from_train_data=./train.a"];
    let ran = coord(&node.serve().await, &arguments).await;
    let here = std::env::current_dir().expect("tests run in a directory");
    let here = here.display();
    assert!(ran.stderr.contains(&format!("warning: --job-dir file://{here}/out is on this machine")), "{ran:?}");
    assert!(ran.stderr.contains(&format!("give file://{here}/train.a")), "{ran:?}");
    let spec = lock(&node.submits)[0].spec.clone().expect("a spec");
    assert_eq!(spec.job_dir, format!("file://{here}/out"));
    assert_eq!(spec.args, ["--from_train_data=./train.a"]);
}

#[tokio::test]
async fn every_command_has_help() {
    let commands = [
        "",
        "demo",
        "serve",
        "submit",
        "list",
        "describe",
        "cancel",
        "delete",
        "wait",
        "watch",
        "why",
        "logs",
        "checkpoints",
        "checkpoints ls",
        "chat",
        "workers",
        "members",
        "storage",
        "storage ls",
        "local train",
        "data dialogs",
    ];
    let mut help = String::new();
    for command in commands {
        let arguments: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let ran = coord(NOBODY, &arguments).await;
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{command}");
        help.push_str(&format!("$ coord {}\n{}\n", arguments.join(" "), ran.stdout));
    }
    golden("help", &help);
}

#[tokio::test]
async fn objects_are_copied_listed_printed_and_removed() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("a.txt"), "hello\n").expect("writable");
    let path = |name: &str| format!("{}/{name}", folder.path().display());
    let storage = async |arguments: &[&str]| {
        let all: Vec<&str> = ["storage"].iter().chain(arguments).copied().collect();
        coord(NOBODY, &all).await
    };
    assert_eq!(storage(&["cp", &path("a.txt"), &format!("file://{}", path("copy/b.txt"))]).await.exit, Some(0));
    assert_eq!(storage(&["cat", &path("copy/b.txt")]).await.stdout, "hello\n");
    let listed = storage(&["ls", &path("copy"), "--output=quiet"]).await;
    assert_eq!(listed.stdout, format!("file://{}\n", path("copy/b.txt")));
    let one = storage(&["ls", &path("copy/b.txt"), "--output=quiet"]).await;
    assert_eq!(one.stdout, listed.stdout);
    let level = storage(&["ls", &path(""), "--output=quiet"]).await;
    assert_eq!(level.stdout, format!("file://{}\nfile://{}/\n", path("a.txt"), path("copy")));
    let all = storage(&["ls", "--recursive", &path(""), "--output=quiet"]).await;
    assert_eq!(all.stdout, format!("file://{}\nfile://{}\n", path("a.txt"), path("copy/b.txt")));
    let table = storage(&["ls", &path("")]).await.stdout;
    assert!(table.lines().any(|line| line.starts_with("-     -  ") && line.ends_with("/copy/")), "{table}");
    let refused = storage(&["rm", &path("copy")]).await;
    assert_eq!(refused.exit, Some(5));
    assert!(refused.stderr.ends_with("hint: `--recursive` removes the 1 objects below it\n"), "{refused:?}");
    let refused = storage(&["cp", &path("copy"), &path("other")]).await;
    assert!(refused.stderr.ends_with("hint: `--recursive` copies the 1 objects below it\n"), "{refused:?}");
    let copied = storage(&["cp", &path("a.txt"), &path("copy/c.txt"), "--output=json"]).await;
    let (from, to) = (path("a.txt"), path("copy/c.txt"));
    assert_eq!(copied.stdout, format!("{{\"from\":\"file://{from}\",\"to\":\"file://{to}\"}}\n"));
    let removed = storage(&["rm", &path("copy"), "--recursive", "--yes", "--output=quiet"]).await;
    assert_eq!(removed.stdout, format!("file://{}\nfile://{to}\n", path("copy/b.txt")));
    assert_eq!(storage(&["ls", &path("copy")]).await.exit, Some(5));
    assert_eq!(storage(&["cat", &path("copy/b.txt")]).await.exit, Some(5));
}
