//! The life of a job on two workers, as its user sees it.

use coord_tests::cluster::{Cluster, Layout, until};
use serde_json::Value;

const STEPS: u64 = 240;

#[test]
fn a_job_on_two_workers_logs_saves_counts_its_samples_and_succeeds() {
    let cluster = Cluster::start(Layout::workers(&[1, 1]));
    let program = cluster.dialogues().flags(STEPS);
    cluster.submit("first", &["--workers", "2"], &program);
    let ended = cluster.coord(&["logs", "first", "-f", "--output", "json"]);
    assert_eq!(ended.status, Some(0), "{ended}");
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    the_services_lines_are_in_order(&lines);
    the_masters_lines_are_in_order(&lines);
    let of_second = messages(&lines, "worker-replica-1");
    assert!(of_second[0].starts_with("Running command: translate --from_train_data="), "{of_second:?}");
    assert_eq!(of_second.last().map(String::as_str), Some("Module completed with exit status 0."));

    assert_eq!(cluster.wait("first").done(), "SUCCEEDED\n");
    let described = cluster.describe("first");
    assert_eq!(described["state"], "SUCCEEDED");
    assert_eq!((&described["generation"], &described["restarts"]), (&1.into(), &0.into()));
    assert_eq!(described["interruptions"], Value::Array(Vec::new()));
    for rank in [0, 1] {
        let replica = &described["replicas"][rank];
        assert_eq!(replica["outcome"], "exit 0", "{replica}");
        assert_eq!(replica["consequence"], false, "{replica}");
    }
    the_newest_five_checkpoints_stay(&cluster);
}

#[test]
fn every_replica_shows_its_samples_while_it_runs_and_after_its_end() {
    let cluster = Cluster::start(Layout::workers(&[1, 1]));
    let program = cluster.dialogues().flags(400);
    cluster.submit("counted", &["--workers", "2"], &program);
    cluster.until("counted", "a loss", |seen| seen["progress"]["loss"].is_number());
    let page = || cluster.coord(&["describe", "counted"]).done();
    let running = page();
    assert!(running.contains(" of 400 (") && running.contains(", loss "), "{running}");
    let all_count = |seen: &Value| (0..2).all(|rank| seen["replicas"][rank]["samples"].as_u64() > Some(0));
    cluster.until("counted", "samples of both ranks while it runs", all_count);
    cluster.wait("counted").done();
    let described = cluster.describe("counted");
    assert!(all_count(&described), "{described:#}");
    let ended = page();
    assert!(ended.contains("step 400 of 400 (100 %), loss "), "{ended}");
}

#[test]
fn states_follow_each_other_and_the_list_shows_them() {
    let mut cluster = Cluster::start(Layout::workers(&[1]));
    let program = cluster.dialogues().flags(0);
    cluster.stop_worker(0);
    cluster.until_connected(0);
    cluster.submit("waits", &["--workers", "1", "--labels", "team=a"], &program);
    let queued = cluster.describe("waits");
    assert_eq!(queued["state"], "QUEUED");
    assert!(queued["reasons"][0]["text"].is_string(), "a waiting job says why: {queued:#}");
    cluster.start_worker(0);
    cluster.until("waits", "running", |seen| seen["state"] == "RUNNING");
    cluster.submit("behind", &["--workers", "1"], &program);
    let list = |flags: &[&str]| {
        let mut words = vec!["list", "--output", "json"];
        words.extend(flags);
        let jobs = cluster.coord(&words).json();
        let pairs = jobs.as_array().expect("a list").iter();
        pairs.map(|job| format!("{} {}", job["job"], job["state"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(list(&[]), ["behind QUEUED", "waits RUNNING"]);
    assert_eq!(list(&["--label", "team=a"]), ["waits RUNNING"]);
    assert_eq!(list(&["--state", "QUEUED"]), ["behind QUEUED"]);
    cluster.coord(&["cancel", "behind"]).done();
    cluster.coord(&["cancel", "waits"]).done();
    for job in ["behind", "waits"] {
        assert_eq!(cluster.wait(job).status, Some(3));
    }
    assert_eq!(list(&[]), ["behind CANCELLED", "waits CANCELLED"]);
}

#[test]
fn an_agent_that_leaves_for_good_leaves_the_last_lines_of_its_replicas_in_storage() {
    let mut cluster = Cluster::start(Layout::workers(&[1]));
    cluster.submit("moved", &["--workers", "1"], &cluster.dialogues().flags(0));
    cluster.until_step("moved", 20);
    cluster.stop_worker(0);
    let folder = cluster.folder().join("storage/jobs/moved/logs/master-replica-0/1");
    let mut chunks: Vec<_> =
        std::fs::read_dir(folder).expect("logs").map(|entry| entry.expect("an entry").path()).collect();
    chunks.sort();
    let text: String = chunks.iter().map(|chunk| std::fs::read_to_string(chunk).expect("text")).collect();
    let last = text.lines().last().unwrap_or_default();
    assert!(last.ends_with("\tP\tModule completed with exit status 143."), "{text}");
}

fn messages(lines: &[Value], task: &str) -> Vec<String> {
    let of_task = lines.iter().filter(|line| line["task"] == task);
    of_task.map(|line| line["message"].as_str().expect("text").to_owned()).collect()
}

fn the_services_lines_are_in_order(lines: &[Value]) {
    let expected = [
        "Validating job requirements...",
        "Job creation request has been successfully validated.",
        "Job first is queued.",
        "Waiting for job to be provisioned.",
        "Generation 1 is preparing with 2 replicas.",
        "Waiting for training program to start.",
        "Job is running from step 0.",
        "Tearing down training program.",
        "Job completed successfully.",
    ];
    assert_eq!(messages(lines, "service"), expected);
    let first_of_replicas = lines.iter().position(|line| line["task"] != "service").expect("lines of replicas");
    assert!(first_of_replicas >= 6, "a replica speaks only after the service has started it");
}

/// The old program's lines, in its order.
fn the_masters_lines_are_in_order(lines: &[Value]) {
    let said = messages(lines, "master-replica-0");
    let position = |part: &str| {
        let found = said.iter().position(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("`{part}` is missing in {said:#?}"))
    };
    let parts = [
        "Running command: translate ",
        "Creating vocabulary ",
        "Tokenizing data in ",
        "Creating 1 layers of 32 units.",
        "Created model with fresh parameters.",
        "Reading development and training data (limit: 0).",
        "global step 20 learning rate 0.5000 step-time ",
        "  eval: bucket 0 perplexity ",
        "global step 40 learning rate ",
        "Module completed with exit status 0.",
    ];
    let positions: Vec<usize> = parts.iter().map(|part| position(part)).collect();
    assert!(positions.is_sorted(), "{parts:?} at {positions:?} in {said:#?}");
    let progress = said.iter().filter(|line| line.starts_with("global step "));
    let steps: Vec<&str> = progress.map(|line| line.split(' ').nth(2).expect("a step")).collect();
    let expected: Vec<String> = (1..=STEPS / 20).map(|interval| (interval * 20).to_string()).collect();
    assert_eq!(steps, expected);
    assert_eq!(said.iter().filter(|line| line.starts_with("  eval: ")).count(), 4 * expected.len());
}

fn the_newest_five_checkpoints_stay(cluster: &Cluster) {
    let listed = cluster.coord(&["checkpoints", "verify", "first", "--output", "json"]).json();
    let rows = listed.as_array().expect("a list");
    assert_eq!(rows.len(), 5, "{listed:#}");
    for (row, step) in rows.iter().zip([240, 220, 200, 180, 160]) {
        assert_eq!((&row["step"], &row["problem"]), (&step.into(), &Value::Null), "{row}");
    }
    let pointer = format!("{}/jobs/first/train/checkpoint", cluster.storage());
    let text = until("a pointer to the newest checkpoint", || {
        let ended = cluster.coord(&["storage", "cat", &pointer]);
        if ended.stdout.contains("translate.ckpt-240") { Ok(ended.stdout) } else { Err(ended.to_string()) }
    });
    assert!(text.starts_with("model_checkpoint_path"), "{text}");
}
