//! Processes that stand still for a while and go on as if nothing had been.

use coord_tests::cluster::{Cluster, Layout, signal};
use rustix::process::Signal;

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
