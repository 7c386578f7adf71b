//! Progress and result of a run as objects in its job dir, written beside training.

use std::time::{Duration, Instant};

use coord_io::storage::Storage;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};
use tokio::task::JoinHandle;
use tokio::time::timeout_at;

use super::lines::perplexity;

/// Lines of a new progress object are collected for so long: stores dislike small objects in quick succession.
const OBJECT_EVERY: Duration = Duration::from_secs(10);
/// More waiting lines than these are dropped, with a warning, when the store is slow.
const QUEUE: usize = 1024;
/// The end of a run waits so long for the last objects.
const LAST_MOMENTS: Duration = Duration::from_secs(30);

/// What one progress line of the output says. Figures that are not finite become `null` in JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    pub step: u64,
    pub learning_rate: f64,
    pub step_seconds: f64,
    pub mean_loss: f64,
    /// Mean loss of each bucket; nothing for an empty one.
    pub evaluation: Vec<Option<f64>>,
}

impl Interval {
    fn evaluation(&self) -> Value {
        self.evaluation.iter().map(|loss| loss.map(perplexity)).collect::<Vec<_>>().into()
    }

    fn line(&self) -> Value {
        json!({
            "step": self.step,
            "learning_rate": self.learning_rate,
            "step_seconds": self.step_seconds,
            "train_perplexity": perplexity(self.mean_loss),
            "eval": self.evaluation(),
        })
    }
}

/// Held by the master replica of a job that has a job dir. Failures to write are warnings: training does not depend on
/// these objects.
pub struct Results {
    runtime: Handle,
    storage: Storage,
    begun: Instant,
    lines: Sender<String>,
    writer: JoinHandle<()>,
    last: Option<Interval>,
}

impl Results {
    pub fn start(runtime: &Handle, job_dir: Storage) -> Self {
        let (lines, receiver) = channel(QUEUE);
        let writer = runtime.spawn(write(job_dir.clone(), receiver));
        Self { runtime: runtime.clone(), storage: job_dir, begun: Instant::now(), lines, writer, last: None }
    }

    pub fn interval(&mut self, interval: Interval) {
        match self.lines.try_send(format!("{}\n", interval.line())) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => tracing::warn!(step = interval.step, "a progress line was dropped"),
        }
        self.last = Some(interval);
    }

    /// Writes what waits, without a result: the run was stopped and will go on.
    pub fn stop(self) -> Storage {
        let Self { runtime, storage, lines, writer, .. } = self;
        drop(lines);
        if runtime.block_on(async { tokio::time::timeout(LAST_MOMENTS, writer).await }).is_err() {
            tracing::warn!("the last progress lines were not written in time");
        }
        storage
    }

    /// Writes what waits and `result.json`.
    pub fn finish(self, step: u64, state_digest: &str) {
        let (runtime, seconds, last) = (self.runtime.clone(), self.begun.elapsed().as_secs_f64(), self.last.clone());
        let storage = self.stop();
        let result = json!({
            "step": step,
            "state_digest": state_digest,
            "perplexity": last.as_ref().map(|interval| perplexity(interval.mean_loss)),
            "eval": last.as_ref().map(Interval::evaluation),
            "seconds": seconds,
        });
        let put = async { tokio::time::timeout(LAST_MOMENTS, storage.put("result.json", format!("{result}\n"))).await };
        match runtime.block_on(put) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "result.json was not written"),
            Err(_) => tracing::warn!("result.json was not written in time"),
        }
    }
}

/// `progress/<seq>.jsonl`: the first line at once, later ones together. Numbers go on after those of earlier runs.
async fn write(storage: Storage, mut lines: Receiver<String>) {
    let mut next = match storage.list("progress").await {
        Ok(entries) => entries.iter().filter_map(|entry| number(&entry.path)).max().map_or(0, |last| last + 1),
        Err(error) => {
            tracing::warn!(%error, "progress is not written to the job dir");
            return;
        }
    };
    let mut due = tokio::time::Instant::now();
    let mut object = String::new();
    loop {
        let line = if object.is_empty() { Ok(lines.recv().await) } else { timeout_at(due, lines.recv()).await };
        let closed = matches!(line, Ok(None));
        if let Ok(Some(line)) = line {
            object.push_str(&line);
        }
        let now = tokio::time::Instant::now();
        if !object.is_empty() && (closed || now >= due) {
            // Kept and tried again with the next lines if it fails.
            match storage.put(&format!("progress/{next:020}.jsonl"), object.clone()).await {
                Ok(()) => {
                    object.clear();
                    next += 1;
                }
                Err(error) => tracing::warn!(%error, "progress was not written"),
            }
            due = now + OBJECT_EVERY;
        }
        if closed {
            return;
        }
    }
}

fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".jsonl")?.parse().ok()
}
