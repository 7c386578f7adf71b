//! The agent's gauges.

use prometheus::core::Collector;
use prometheus::{GaugeVec, IntCounter, IntGauge, Opts, Registry};

#[derive(Clone)]
pub struct Metrics {
    pub registry: Registry,
    pub slots: IntGauge,
    pub replicas: IntGauge,
    pub connected: IntGauge,
    pub facts_waiting: IntGauge,
    pub launches: IntCounter,
    pub step: GaugeVec,
    pub loss: GaugeVec,
    pub tokens_per_second: GaugeVec,
    pub checkpoint_seconds: GaugeVec,
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let collector = made.expect("names and labels are constants of this module");
    registry.register(Box::new(collector.clone())).expect("each name is registered once");
    collector
}

impl Metrics {
    pub fn new() -> Self {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str| registered(&registry, IntGauge::new(name, help));
        // One series for each job whose master replica runs here; it ends with the replica.
        let by_job = |name: &str, help: &str| registered(&registry, GaugeVec::new(Opts::new(name, help), &["job"]));
        Self {
            slots: gauge("worker_slots", "Slots of this worker."),
            replicas: gauge("worker_replicas", "Replicas that run on this worker."),
            connected: gauge("worker_coordinator_connected", "1 while a stream to a leader is open."),
            facts_waiting: gauge("worker_facts_waiting", "Facts that no leader has acknowledged yet."),
            launches: registered(
                &registry,
                IntCounter::new("worker_launches_total", "Replicas that this agent has started."),
            ),
            step: by_job("worker_job_step", "Steps done by the job whose master replica runs here."),
            loss: by_job("worker_job_loss", "Loss of the newest step."),
            tokens_per_second: by_job("worker_job_tokens_per_second", "Non-padding tokens a second, all replicas."),
            checkpoint_seconds: by_job("worker_job_checkpoint_duration_seconds", "Duration of the newest save."),
            registry: registry.clone(),
        }
    }

    pub fn forget(&self, job: &str) {
        for family in [&self.step, &self.loss, &self.tokens_per_second, &self.checkpoint_seconds] {
            // A job without a series had nothing to say.
            let _ = family.remove_label_values(&[job]);
        }
    }
}
