//! Jobs that fail: who was first, how, and what it said (JOB-06, SEQ-10).

use coord_tests::cluster::{Cluster, Layout, signal};

#[test]
fn the_replica_that_failed_first_is_told_from_those_that_fell_with_it() {
    let mut cluster = Cluster::start(Layout::workers(&[1, 1, 1, 1]));
    let program = cluster.dialogues().flags(0);
    cluster.submit("struck", &["--workers", "4"], &program);
    cluster.until_step("struck", 60);
    let worker = cluster.worker_of("struck", 2);
    let replica = *cluster.worker(worker).descendants().first().expect("a replica below its agent");
    // A fault of the program, unlike SIGKILL: another try would end the same way.
    signal(replica, rustix::process::Signal::ILL);
    assert_eq!(cluster.wait("struck").status, Some(1));

    let described = cluster.describe("struck");
    let failure = &described["failure"];
    assert_eq!((&failure["replica"], &failure["signal"]), (&"worker-replica-2".into(), &4.into()), "{described:#}");
    let replicas = described["replicas"].as_array().expect("replicas");
    assert_eq!(replicas.len(), 4);
    for replica in replicas {
        assert_eq!(replica["consequence"], replica["rank"] != 2, "{described:#}");
    }
    let why = cluster.coord(&["why", "struck"]).done();
    assert!(why.contains("Job [struck] is FAILED.") && why.contains("worker-replica-2"), "{why}");
    let page = cluster.coord(&["describe", "struck"]).done();
    assert_eq!(page.matches("(consequence)").count(), 3, "{page}");
}

#[test]
fn a_diverging_job_fails_with_its_reason_its_last_lines_and_its_last_good_checkpoint() {
    let cluster = Cluster::start(Layout::workers(&[1, 1]));
    let mut program = cluster.dialogues().flags(500);
    program.extend(["--learning_rate=1e30", "--max_gradient_norm=1e30", "--max_bad_steps=3"].map(str::to_owned));
    cluster.submit("diverges", &["--workers", "2"], &program);
    assert_eq!(cluster.wait("diverges").status, Some(1));
    let described = cluster.describe("diverges");
    let failure = &described["failure"];
    assert_eq!(failure["cause"], "user_error", "{described:#}");
    assert_eq!(failure["exit_code"], 1, "{described:#}");
    let text = failure["text"].as_str().unwrap_or_default();
    assert!(text.contains("finite"), "{described:#}");
    assert!(failure["tail"].as_str().is_some_and(|tail| tail.contains("finite")), "{described:#}");
    assert_eq!(described["restarts"], 0, "{described:#}");
    let why = cluster.coord(&["why", "diverges"]).done();
    assert!(why.contains(text) && why.contains("Last lines of"), "{why}");
    let train = cluster.folder().join("storage/jobs/diverges/train");
    let committed = std::fs::read_dir(&train).into_iter().flatten().flatten();
    let committed = committed.filter(|entry| entry.file_name().to_string_lossy().ends_with(".json"));
    let names: Vec<_> = committed.map(|entry| entry.file_name()).filter(|name| name != "lineage.json").collect();
    assert!(names.is_empty(), "weights that are not finite were saved: {names:?}");
}

#[test]
fn a_job_whose_data_disappears_between_two_generations_names_the_file() {
    let mut cluster = Cluster::start(Layout::workers(&[1, 1]));
    let program = cluster.dialogues().flags(0);
    cluster.submit("starved", &["--workers", "1:2"], &program);
    cluster.until_step("starved", 60);
    std::fs::remove_file(cluster.folder().join("dialogues/train.b")).expect("the file was there");
    let victim = cluster.worker_of("starved", 1);
    cluster.kill_worker(victim);
    assert_eq!(cluster.wait("starved").status, Some(1));
    let described = cluster.describe("starved");
    let failure = &described["failure"];
    assert_eq!((&failure["cause"], &failure["replica"]), (&"data".into(), &"master-replica-0".into()), "{described:#}");
    assert!(failure["text"].as_str().is_some_and(|text| text.contains("dialogues/train.b")), "{described:#}");
    assert_eq!(failure["exit_code"], 1, "{described:#}");
}
