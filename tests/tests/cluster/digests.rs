//! The same bits for any number of workers, whatever happened to them on the way.

use coord_tests::cluster::{Cluster, Layout, step_of};

/// Enough for a kill in the middle on any machine; some seconds.
const STEPS: u64 = 1_200;

#[test]
fn a_cluster_and_local_training_with_1_and_3_workers_give_the_same_digest() {
    let cluster = Cluster::start(Layout::workers(&[1, 1]));
    let program = cluster.dialogues().flags(240);
    cluster.submit("two", &["--workers", "2"], &program);
    cluster.submit("one", &["--workers", "1"], &program);
    let quiet = cluster.quiet_digest(1, &program);
    assert_eq!(quiet.len(), 64, "{quiet}");
    assert_eq!(cluster.quiet_digest(3, &program), quiet);
    for job in ["two", "one"] {
        cluster.wait(job).done();
        assert_eq!(cluster.digest(job), quiet, "job {job}");
    }
}

#[test]
fn a_job_survives_the_death_of_every_process_and_ends_with_the_same_digest() {
    let mut cluster = Cluster::start(Layout::workers(&[1, 1, 1]));
    let program = cluster.dialogues().flags(STEPS);
    cluster.submit("phoenix", &["--workers", "1:3"], &program);
    let before = cluster.until_step("phoenix", 150);
    assert_eq!(before["replicas"].as_array().map(Vec::len), Some(3), "{before:#}");
    cluster.kill_everything();

    // One worker does not come back.
    cluster.start_coordinator(0);
    cluster.start_worker(0);
    cluster.start_worker(2);
    assert_eq!(cluster.wait("phoenix").done(), "SUCCEEDED\n");
    let described = cluster.describe("phoenix");
    assert!(described["generation"].as_u64() >= Some(2), "{described:#}");
    let last =
        described["replicas"].as_array().expect("replicas").iter().filter(|replica| replica["outcome"] == "exit 0");
    assert!((1..=2).contains(&last.count()), "{described:#}");
    assert_eq!(cluster.digest("phoenix"), cluster.quiet_digest(1, &program));
}

#[test]
fn a_killed_worker_costs_a_pause_and_no_bit() {
    let mut cluster = Cluster::start(Layout::workers(&[1, 1]));
    let program = cluster.dialogues().flags(STEPS);
    cluster.submit("halved", &["--workers", "1:2"], &program);
    cluster.until_step("halved", 100);
    let victim = cluster.worker_of("halved", 1);
    cluster.kill_worker(victim);
    let resumed = cluster.until("halved", "generation 2 runs", |seen| {
        seen["generation"] == 2 && seen["state"] == "RUNNING" && step_of(seen) > 0
    });
    let living =
        resumed["replicas"].as_array().expect("replicas").iter().filter(|replica| replica["outcome"].is_null());
    assert_eq!(living.count(), 1, "{resumed:#}");
    assert_eq!(cluster.wait("halved").done(), "SUCCEEDED\n");

    let described = cluster.describe("halved");
    let interruptions = described["interruptions"].as_array().expect("interruptions");
    assert_eq!(interruptions.len(), 1, "{described:#}");
    let interruption = &interruptions[0];
    assert_eq!(interruption["generation"], 1);
    assert!(interruption["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{interruption}");
    assert!(interruption["pause_seconds"].as_f64() > Some(0.0), "{interruption}");
    assert!(interruption["step_before"].as_u64() >= Some(100), "{interruption}");
    let page = cluster.coord(&["describe", "halved"]).done();
    assert!(page.contains("Interruptions:\n  TIME"), "{page}");
    assert_eq!(cluster.digest("halved"), cluster.quiet_digest(1, &program));
}

#[test]
fn a_killed_replica_is_replaced_and_costs_no_bit() {
    let mut cluster = Cluster::start(Layout::workers(&[1, 1]));
    let program = cluster.dialogues().flags(STEPS);
    cluster.submit("stung", &["--workers", "2"], &program);
    cluster.until_step("stung", 100);
    let worker = cluster.worker_of("stung", 0);
    let replicas = cluster.worker(worker).descendants();
    let replica = *replicas.first().expect("a replica below its agent");
    coord_tests::cluster::signal(replica, rustix::process::Signal::KILL);
    cluster.until("stung", "generation 2 runs", |seen| seen["generation"] == 2 && seen["state"] == "RUNNING");
    assert_eq!(cluster.wait("stung").done(), "SUCCEEDED\n");
    let described = cluster.describe("stung");
    let reason = described["interruptions"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("master-replica-0"), "{described:#}");
    assert_eq!(cluster.digest("stung"), cluster.quiet_digest(1, &program));
}
