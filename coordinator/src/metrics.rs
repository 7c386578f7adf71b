//! Metrics, computed when they are asked for: the series of finished jobs vanish with the jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use coord_common::{Device, Phase, Step};
use coord_io::http::Readiness;
use coordinator_core::{check, stall};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts, Registry};

use crate::handle::CoordinatorHandle;
use crate::leader::Leader;

/// Name, help, label. No user's text is a label but the id of a job that is not over.
const GAUGES: [(&str, &str, &[&str]); 15] = [
    ("coord_jobs", "Jobs in the state, by phase.", &["phase"]),
    ("coord_queue_length", "Jobs that wait for their first slots.", &[]),
    (
        "coord_slots",
        "Slots of all workers that are not lost (total), and those that no replica holds (free).",
        &["state"],
    ),
    ("coord_workers", "Workers, by state.", &["state"]),
    ("coord_job_step", "Newest step that the master replica reported.", &["job"]),
    ("coord_job_loss", "Newest loss that the master replica reported.", &["job"]),
    ("coord_job_tokens_per_second", "Tokens that the job trains on in a second.", &["job"]),
    ("coord_job_checkpoint_age_seconds", "Time since the newest recorded checkpoint was complete.", &["job"]),
    ("coord_job_checkpoint_duration_seconds", "Time that the newest checkpoint took to save.", &["job"]),
    ("coord_raft_term", "Raft term of this node.", &[]),
    ("coord_raft_commit_index", "Newest log entry that this node knows to be committed.", &[]),
    ("coord_raft_applied_index", "Newest log entry that this node has applied.", &[]),
    ("coord_raft_is_leader", "1 while this node leads, 0 otherwise.", &[]),
    ("coord_raft_has_leader", "1 while this node knows a leader, 0 otherwise.", &[]),
    ("coord_invariant_violations", "Rules of the state that do not hold; anything but 0 is a bug.", &[]),
];

/// All metrics of a node.
pub fn registry(leader: &Leader) -> anyhow::Result<Registry> {
    let registry = Registry::new();
    registry.register(Box::new(Collected::new(leader.clone())?)).context("register metrics")?;
    Ok(registry)
}

/// Ready = this node knows a leader, so that calls are answered or sent on.
pub fn readiness(handle: CoordinatorHandle) -> Readiness {
    Arc::new(move || match handle.view().raft.leader {
        0 => Err("no leader is known".to_owned()),
        _ => Ok(()),
    })
}

struct Collected {
    leader: Leader,
    descriptions: Vec<Desc>,
}

/// One scrape: gauges by name, made afresh.
struct Page {
    gauges: BTreeMap<&'static str, GaugeVec>,
}

impl Page {
    fn new() -> prometheus::Result<Self> {
        let mut gauges = BTreeMap::new();
        for (name, help, labels) in GAUGES {
            gauges.insert(name, GaugeVec::new(Opts::new(name, help), labels)?);
        }
        Ok(Self { gauges })
    }

    fn set(&self, name: &str, labels: &[&str], value: f64) {
        self.gauges[name].with_label_values(labels).set(value);
    }
}

impl Collected {
    fn new(leader: Leader) -> anyhow::Result<Self> {
        let page = Page::new().context("describe metrics")?;
        let descriptions = page.gauges.values().flat_map(|gauge| gauge.desc()).cloned().collect();
        Ok(Self { leader, descriptions })
    }

    fn fill(&self, page: &Page) {
        let raft = self.leader.handle().view().raft;
        page.set("coord_raft_term", &[], raft.term as f64);
        page.set("coord_raft_commit_index", &[], raft.committed as f64);
        page.set("coord_raft_applied_index", &[], raft.applied as f64);
        page.set("coord_raft_is_leader", &[], f64::from(u8::from(raft.leads)));
        page.set("coord_raft_has_leader", &[], f64::from(u8::from(raft.leader != 0)));
        self.fill_jobs(page, raft.leads);
        self.fill_workers(page);
    }

    fn fill_jobs(&self, page: &Page, leads: bool) {
        let now = self.leader.now();
        self.leader.handle().peek(|state| {
            page.set("coord_invariant_violations", &[], check(state).len() as f64);
            let mut phases: BTreeMap<Phase, u32> = Phase::ALL.into_iter().map(|phase| (phase, 0)).collect();
            for job in state.jobs() {
                *phases.entry(job.phase).or_default() += 1;
            }
            for (phase, count) in phases {
                page.set("coord_jobs", &[phase.as_str()], f64::from(count));
            }
            let waiting: usize =
                [Device::Cpu, Device::Cuda].into_iter().map(|device| state.queue(device).count()).sum();
            page.set("coord_queue_length", &[], waiting as f64);
            if !leads {
                // What only the leader hears would be stale here.
                return;
            }
            let agents = self.leader.agents();
            for place in state.active() {
                let Some(job) = state.job(&place.job).filter(|job| !job.phase.is_final()) else { continue };
                let label = [place.job.as_str()];
                if let Some(record) = job.newest_checkpoint() {
                    let age = now.since(record.at).0 as f64 / 1_000.0;
                    page.set("coord_job_checkpoint_age_seconds", &label, age);
                }
                // Before its first step a job has no figures.
                let gauge = agents.liveness.progress.get(&place.job).filter(|gauge| gauge.step > Step(0));
                let Some(progress) = gauge else { continue };
                page.set("coord_job_step", &label, progress.step.0 as f64);
                page.set("coord_job_loss", &label, progress.loss);
                let stands_still = stall::of(&agents.liveness, now, job).is_some();
                let speed = if stands_still { 0.0 } else { progress.tokens_per_second };
                page.set("coord_job_tokens_per_second", &label, speed);
                page.set("coord_job_checkpoint_duration_seconds", &label, progress.checkpoint_seconds);
            }
        });
    }

    fn fill_workers(&self, page: &Page) {
        let mut states =
            BTreeMap::from(["connected", "unreachable", "leaving", "left", "lost"].map(|state| (state, 0)));
        let (mut total, mut free) = (0.0, 0.0);
        for worker in self.leader.workers() {
            if !["left", "lost"].contains(&worker.state.as_str()) {
                total += f64::from(worker.slots);
                free += f64::from(worker.slots_free);
            }
            if let Some(count) = states.get_mut(worker.state.as_str()) {
                *count += 1;
            }
        }
        for (state, count) in states {
            page.set("coord_workers", &[state], f64::from(count));
        }
        page.set("coord_slots", &["total"], total);
        page.set("coord_slots", &["free"], free);
    }
}

impl Collector for Collected {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Ok(page) = Page::new() else { return Vec::new() };
        self.fill(&page);
        page.gauges.values().flat_map(|gauge| gauge.collect()).collect()
    }
}
