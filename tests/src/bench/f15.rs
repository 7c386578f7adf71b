//! F15: what a cluster without work holds in memory.

use std::time::Duration;

use super::machine::resident_mebibytes;
use super::report::{Case, Report};
use crate::cluster::{Cluster, Layout};

const COORDINATOR_LIMIT: f64 = 50.0;
const AGENT_LIMIT: f64 = 60.0;
/// By then what only the start needed is given back.
const IDLE: Duration = Duration::from_secs(60);

pub fn run(smoke: bool) -> Report {
    let mut cluster = Cluster::start(Layout::workers(&[1]));
    if !smoke {
        std::thread::sleep(IDLE);
    }
    let case = |name, value, limit| Case { name, unit: "MiB", value, limit, sample: None };
    let coordinator = resident_mebibytes(cluster.coordinator(0).id());
    let agent = cluster.worker(0);
    let of_agent: f64 = std::iter::once(agent.id()).chain(agent.descendants()).map(resident_mebibytes).sum();
    let cases = vec![
        case("coordinator", coordinator, COORDINATOR_LIMIT),
        case("agent with its replicas", of_agent, AGENT_LIMIT),
    ];
    Report { figure: "F15", cases }
}
