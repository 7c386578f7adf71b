//! What monitoring sees: metrics, health, readiness.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use coord_tests::cluster::{Cluster, Layout, promtool, until};

#[test]
fn metrics_idle_and_busy_are_well_formed() {
    let mut cluster = Cluster::start(Layout::workers(&[1]));
    let program = cluster.dialogues().flags(0);
    let addresses = [cluster.coordinator_http(0), cluster.worker_http(0)];
    for address in &addresses {
        lint(address);
    }
    cluster.submit("busy", &[], &program);
    cluster.until_step("busy", 20);
    for address in &addresses {
        lint(address);
    }
    let (_, coordinator) = get(&addresses[0], "/metrics").expect("it listens");
    for line in ["coord_jobs{phase=\"RUNNING\"} 1", "coord_slots{state=\"free\"} 0", "coord_invariant_violations 0"] {
        assert!(coordinator.lines().any(|found| found == line), "`{line}` is missing in\n{coordinator}");
    }
    let (_, worker) = get(&addresses[1], "/metrics").expect("it listens");
    for line in ["worker_replicas 1", "worker_launches_total 1", "worker_coordinator_connected 1"] {
        assert!(worker.lines().any(|found| found == line), "`{line}` is missing in\n{worker}");
    }
    cluster.kill_worker(0);
    until("a lost worker in the metrics", || {
        let (_, page) = get(&addresses[0], "/metrics").ok_or("no answer")?;
        if page.contains("coord_workers{state=\"lost\"} 1") { Ok(()) } else { Err(page) }
    });
}

#[test]
fn health_and_readiness_tell_a_living_process_from_a_useful_one() {
    let mut cluster = Cluster::start(Layout { coordinators: 3, ..Layout::workers(&[1]) });
    let worker = cluster.worker_http(0);
    let mut all: Vec<String> = (0..3).map(|node| cluster.coordinator_http(node)).collect();
    all.push(worker.clone());
    for address in &all {
        assert_eq!(get(address, "/healthz"), Some((200, "ok\n".to_owned())), "{address}");
        assert_eq!(get(address, "/readyz"), Some((200, "ready\n".to_owned())), "{address}");
        assert_eq!(get(address, "/nothing").map(|(status, _)| status), Some(404), "{address}");
    }
    // One of three is alive and of no use; so is a worker that finds nobody who leads.
    cluster.kill_coordinator(0);
    cluster.kill_coordinator(1);
    for address in [&all[2], &worker] {
        let reason = until(&format!("{address} is not ready"), || match get(address, "/readyz") {
            Some((503, reason)) => Ok(reason),
            other => Err(format!("{other:?}")),
        });
        assert!(reason.starts_with("not ready: "), "{reason}");
        assert_eq!(get(address, "/healthz"), Some((200, "ok\n".to_owned())), "{address}");
    }
}

fn lint(address: &str) {
    let (status, page) = get(address, "/metrics").expect("it listens");
    assert_eq!(status, 200);
    let mut child = Command::new(promtool())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool can be started");
    child.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("promtool reads");
    let output = child.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && said.is_empty(), "promtool says of {address}: {said}\n{page}");
}

/// Status and body; nothing where nobody listens.
fn get(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout above zero");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
