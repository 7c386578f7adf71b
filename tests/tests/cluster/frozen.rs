//! Processes that stand still for a while and go on as if nothing had been.

use coord_tests::cluster::{Cluster, Layout, signal};
use rustix::process::Signal;
use serde_json::Value;

/// Its stream outlives the lease, so that nothing but its next heartbeat shows that it is there again.
#[test]
fn an_agent_that_was_frozen_for_longer_than_the_lease_takes_its_place_again() {
    let mut cluster = Cluster::start(Layout { lease_seconds: 2, ..Layout::workers(&[1]) });
    cluster.submit("thaws", &["--workers", "1"], &cluster.dialogues().flags(0));
    cluster.until_step("thaws", 20);
    let agent = cluster.worker(0).id();
    signal(agent, Signal::STOP);
    cluster.until("thaws", "the loss of its worker", |seen| {
        seen["interruptions"].as_array().is_some_and(|interruptions| !interruptions.is_empty())
    });
    signal(agent, Signal::CONT);
    cluster.until("thaws", "the next generation", |seen| seen["state"] == "RUNNING" && seen["generation"] == 2);
}

/// Its agent lives and hears it no more; its peers wait for it in the middle of a step.
#[test]
fn a_replica_that_is_stopped_is_named_then_ended_and_its_job_ends_with_the_same_bits() {
    let mut cluster = Cluster::start(Layout { replica_silence_seconds: 20, ..Layout::default() });
    let program = cluster.dialogues().flags(400);
    cluster.submit("stops", &["--workers", "2"], &program);
    cluster.until_step("stops", 20);
    let worker = cluster.worker_of("stops", 1);
    let replica = cluster.worker(worker).descendants()[0];
    signal(replica, Signal::STOP);

    let waits = |codes: &'static [&str]| move |seen: &Value| codes.iter().all(|code| reason(seen, code).is_some());
    let seen = cluster.until("stops", "both reasons", waits(&["no_step", "silent_replicas"]));
    let text = reason(&seen, "silent_replicas").unwrap_or_default();
    assert!(text.contains("worker-replica-1"), "{seen:#}");
    assert_eq!(seen["progress"]["tokens_per_second"], 0.0, "the speed of before is no speed");
    let seen = cluster.until("stops", "the end of the silent replica", |seen| seen["generation"] == 2);
    let interruption = seen["interruptions"][0]["reason"].as_str().unwrap_or_default();
    assert!(interruption.contains("as it was silent for 20 s"), "{seen:#}");
    cluster.wait("stops").done();
    assert_eq!(cluster.digest(&format!("{}/jobs/stops", cluster.storage())), cluster.quiet_digest(1, &program));
}

/// The text of the reason with this code.
fn reason<'a>(seen: &'a Value, code: &str) -> Option<&'a str> {
    seen["reasons"].as_array()?.iter().find(|reason| reason["code"] == code)?["text"].as_str()
}
