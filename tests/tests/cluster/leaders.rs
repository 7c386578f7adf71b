//! Coordinators that die while a job trains.

use coord_tests::cluster::{Cluster, Layout, step_of, until};

const STEPS: u64 = 3_000;

#[test]
fn training_goes_on_without_the_only_coordinator_and_the_job_is_there_when_it_returns() {
    let mut cluster = Cluster::start(Layout::workers(&[1, 1]));
    let program = cluster.dialogues().flags(STEPS);
    cluster.submit("orphan", &["--workers", "2"], &program);
    cluster.until_step("orphan", 100);
    let checkpoints = cluster.folder().join("storage/jobs/orphan/train");
    cluster.kill_coordinator(0);
    let before = newest_checkpoint(&checkpoints);
    // Nobody but the files can tell: a checkpoint of a step that came after the death.
    until("a checkpoint without a coordinator", || match newest_checkpoint(&checkpoints) {
        newest if newest >= before + 60 => Ok(()),
        newest => Err(format!("step {newest}, and {before} when the coordinator died")),
    });
    cluster.start_coordinator(0);
    let back = cluster.until("orphan", "a step after the return", |seen| step_of(seen) >= before + 60);
    assert_eq!((&back["state"], &back["generation"]), (&"RUNNING".into(), &1.into()), "{back:#}");
    assert_eq!(cluster.coord(&["list", "--output", "quiet"]).done(), "orphan\n");
    assert_eq!(cluster.wait("orphan").done(), "SUCCEEDED\n");
    let described = cluster.describe("orphan");
    assert_eq!(described["interruptions"], serde_json::json!([]), "{described:#}");
    assert_eq!(cluster.digest("orphan"), cluster.quiet_digest(1, &program));
}

#[test]
fn two_of_three_coordinators_go_on_when_the_leader_is_killed() {
    let mut cluster = Cluster::start(Layout { coordinators: 3, ..Layout::workers(&[1, 1, 1]) });
    let program = cluster.dialogues().flags(STEPS);
    cluster.submit("kept", &["--workers", "2"], &program);
    let before = step_of(&cluster.until_step("kept", 100));
    let killed = cluster.leader();
    cluster.kill_coordinator(killed);

    // The same list of addresses, one of which is dead.
    cluster.submit("after", &["--workers", "1"], &cluster.dialogues().flags(40));
    assert_ne!(cluster.leader(), killed);
    let described = cluster.until("kept", "steps under the new leader", |seen| step_of(seen) > before);
    assert_eq!((&described["state"], &described["generation"]), (&"RUNNING".into(), &1.into()), "{described:#}");
    assert_eq!(cluster.wait("after").done(), "SUCCEEDED\n");
    cluster.start_coordinator(killed);
    assert_eq!(cluster.wait("kept").done(), "SUCCEEDED\n");
    assert_eq!(cluster.describe("kept")["interruptions"], serde_json::json!([]));
}

/// The new coordinator counts generations from 1 again, and the agent has run this job's generation 1 before.
#[test]
fn a_job_of_an_old_name_runs_after_the_only_coordinators_directory_was_lost() {
    let mut cluster = Cluster::start(Layout::workers(&[1]));
    cluster.submit("again", &["--workers", "1"], &cluster.dialogues().flags(0));
    cluster.until_step("again", 40);
    lose_the_only_directory(&mut cluster);
    let submitted = cluster.try_submit("again", &["--workers", "1"], &cluster.dialogues().flags(400));
    let warning = "jobs/again holds an earlier job of this name: the new one goes on from its checkpoints";
    assert!(submitted.stderr.contains(warning), "{submitted}");
    assert_eq!(cluster.wait("again").done(), "SUCCEEDED\n");
    let log = cluster.coord(&["logs", "again", "--replica", "master-replica-0"]).done();
    assert_eq!(log.matches("Running command: translate").count(), 1, "{log}");
    assert!(log.contains("resuming at step"), "{log}");

    // What an agent has pushed of a log is set aside, not lost.
    let logs = format!("{}/jobs/again/logs/master-replica-0", cluster.storage());
    until_listed(&cluster, &logs, "/1/00000000000000000000.log");
    lose_the_only_directory(&mut cluster);
    cluster.submit("again", &["--workers", "1", "--fresh"], &cluster.dialogues().flags(40));
    assert_eq!(cluster.wait("again").done(), "SUCCEEDED\n");
    let log = cluster.coord(&["logs", "again", "--replica", "master-replica-0"]).done();
    assert!(log.contains("starting at step 0: --fresh was given"), "{log}");
    until_listed(&cluster, &logs, "/1.before-");
}

fn until_listed(cluster: &Cluster, folder: &str, part: &str) {
    until(&format!("{part} in {folder}"), || {
        let listed = cluster.coord(&["storage", "ls", "--recursive", folder]).done();
        if listed.contains(part) { Ok(()) } else { Err(listed) }
    });
}

fn lose_the_only_directory(cluster: &mut Cluster) {
    cluster.kill_coordinator(0);
    std::fs::remove_dir_all(cluster.folder().join("coordinator-1")).expect("the directory of the coordinator");
    cluster.start_coordinator(0);
}

/// Step of the newest manifest in a folder.
fn newest_checkpoint(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let step = |name: String| name.strip_prefix("translate.ckpt-")?.strip_suffix(".json")?.parse().ok();
    names.filter_map(step).max().unwrap_or(0)
}
