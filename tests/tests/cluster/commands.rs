//! Commands that follow a job end when it ends, with a status that tells how (JOB-09).

use coord_tests::cluster::{Cluster, Followed, Layout, until};

/// A follower of each kind, after both have seen the job.
fn followers(cluster: &Cluster, job: &str) -> [Followed; 2] {
    let logs = cluster.follow(&["logs", job, "-f"]);
    let wait = cluster.follow(&["wait", job]);
    until("the first line of a log", || if logs.stdout().is_empty() { Err(logs.stderr()) } else { Ok(()) });
    [logs, wait]
}

#[track_caller]
fn all_end_with(followers: [Followed; 2], status: i32) {
    for follower in followers {
        let ended = follower.end();
        assert_eq!(ended.status, Some(status), "{ended}");
    }
}

#[test]
fn each_end_of_a_job_has_its_own_exit_status() {
    let cluster = Cluster::start(Layout::workers(&[1]));
    let dialogues = cluster.dialogues();

    cluster.submit("succeeds", &[], &dialogues.flags(60));
    all_end_with(followers(&cluster, "succeeds"), 0);

    let mut fails = dialogues.flags(60);
    fails.push("--from_train_data=/nowhere/train.a".to_owned());
    cluster.submit("fails", &[], &fails);
    all_end_with(followers(&cluster, "fails"), 1);

    cluster.submit("is_cancelled", &[], &dialogues.flags(0));
    cluster.until_step("is_cancelled", 20);
    let both = followers(&cluster, "is_cancelled");
    cluster.coord(&["cancel", "is_cancelled"]).done();
    all_end_with(both, 3);
    let described = cluster.describe("is_cancelled");
    let text = described["reasons"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("cancelled by request; newest checkpoint: step "), "{described:#}");

    cluster.submit("is_too_slow", &["--max-running-time", "1s"], &dialogues.flags(0));
    all_end_with(followers(&cluster, "is_too_slow"), 4);
    assert_eq!(cluster.describe("is_too_slow")["ended_by"], "time_limit");

    let streamed = cluster.try_submit("streams", &["--stream-logs"], &dialogues.flags(40));
    assert_eq!(streamed.status, Some(0), "{streamed}");
    assert!(streamed.stdout.ends_with("Job completed successfully.\n") || streamed.stdout.contains("global step 40"));
}

#[test]
fn an_active_job_is_not_removed_and_a_removed_one_is_not_found_with_status_5() {
    let mut cluster = Cluster::start(Layout { lease_seconds: 60, ..Layout::workers(&[1]) });
    cluster.stop_worker(0);
    cluster.until_connected(0);
    cluster.submit("goes", &[], &cluster.dialogues().flags(0));
    let both = followers(&cluster, "goes");
    // An active job is not removed; a waiting one that is cancelled ends at once, and its followers with it.
    cluster.coord(&["delete", "goes", "--yes"]).refused(1, &["goes", "cancel"]);
    cluster.coord(&["cancel", "goes"]).done();
    all_end_with(both, 3);
    cluster.coord(&["delete", "goes", "--yes"]).done();
    for command in [["wait", "goes"], ["describe", "goes"], ["logs", "goes"], ["why", "goes"]] {
        cluster.coord(&command).refused(5, &["goes"]);
    }
    assert_eq!(cluster.coord(&["list", "--output", "quiet"]).done(), "");
    cluster.try_submit("goes", &[], &cluster.dialogues().flags(20)).refused(1, &["goes", "--unique"]);
}

#[test]
fn a_taken_name_is_refused_with_a_hint_and_unique_adds_the_time() {
    let cluster = Cluster::start(Layout::workers(&[1]));
    let program = cluster.dialogues().flags(20);
    cluster.submit("twice", &[], &program);
    cluster.try_submit("twice", &[], &program).refused(1, &["twice", "hint: ", "--unique"]);
    let name = cluster.try_submit("twice", &["--unique", "--output", "quiet"], &program).done();
    let suffix = name.trim().strip_prefix("twice_").unwrap_or_else(|| panic!("a time suffix in {name}"));
    assert_eq!(suffix.len(), "20261224_203332".len());
    assert_eq!(cluster.wait(name.trim()).done(), "SUCCEEDED\n");
    cluster.wait("twice").done();
    cluster.coord(&["delete", "twice", "--yes"]).done();
    assert_eq!(cluster.coord(&["list", "--output", "quiet"]).done(), name);
}

#[test]
fn a_typo_in_a_program_flag_costs_no_name() {
    let cluster = Cluster::start(Layout::workers(&[1]));
    let good = cluster.dialogues().flags(20);
    let mut typo = good.clone();
    typo.push("--sise=3".to_owned());
    cluster.try_submit("typo", &[], &typo).refused(2, &["unknown program flag --sise; did you mean --size?", "hint: "]);
    cluster.try_submit("typo", &[], &[]).refused(2, &["--from_train_data is missing"]);
    cluster.submit("typo", &[], &good);
}

#[test]
fn a_worker_that_is_asked_to_leave_is_seen_off_by_its_name() {
    let mut cluster = Cluster::start(Layout::workers(&[1]));
    cluster.stop_worker(0);
    let log = until("the leader's word of the worker's leave", || {
        let log = cluster.coordinator(0).log();
        if log.contains("worker-1 left") { Ok(log) } else { Err(log) }
    });
    assert!(!log.contains("lost the stream"), "{log}");
}

#[test]
fn a_missing_answer_file_fails_the_job_within_seconds_and_writes_no_checkpoint() {
    // SEQ-15.
    let cluster = Cluster::start(Layout::workers(&[3]));
    let mut program = cluster.dialogues().flags(100);
    let wrong = format!("--to_train_data={}/dialogues/trian.b", cluster.folder().display());
    program.push(wrong.clone());
    cluster.submit("misspelled", &["--workers", "3"], &program);
    assert_eq!(cluster.wait("misspelled").status, Some(1));
    let described = cluster.describe("misspelled");
    let text = described["failure"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("trian.b") && text.contains("to_train_data"), "{described:#}");
    assert_eq!(described["restarts"], 0, "a user's mistake is not tried again: {described:#}");
    assert!(described["progress"]["step"].as_u64().unwrap_or(0) == 0, "{described:#}");
    let train = cluster.folder().join("storage/jobs/misspelled/train");
    assert!(!train.exists(), "{} was made", train.display());
}
