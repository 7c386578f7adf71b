//! Saves checkpoints beside training: one at a time, the newest waiting one replaces an older waiting one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use coord_common::backoff::Backoff;
use coord_common::time::Millis;
use coord_io::storage::Storage;
use tokio::runtime::Handle;

use crate::checkpoint::{CheckpointError, Retention, Saved, Snapshot, save};

/// What the saver tells while it works.
pub trait SaveEvents: Send + Sync {
    fn saved(&self, saved: &Saved, took: Duration);
    fn failed(&self, step: u64, error: &str);
    /// A waiting snapshot gave way to a newer one.
    fn replaced(&self, step: u64, by: u64);
}

/// The newest save, the error of the newest failed one.
#[derive(Debug, Clone, Default)]
struct Shared {
    waiting: Option<Arc<Snapshot>>,
    busy: bool,
    closed: bool,
    last: Option<Result<Saved, Failed>>,
}

/// Why a save failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    pub message: String,
    /// Another try may succeed: the store is unwell, nobody else has the folder.
    pub worth_a_try: bool,
}

impl From<CheckpointError> for Failed {
    fn from(error: CheckpointError) -> Self {
        let worth_a_try = !matches!(error, CheckpointError::TakenOver { .. });
        Self { message: error.to_string(), worth_a_try }
    }
}

pub struct Saver {
    shared: Arc<(Mutex<Shared>, Condvar)>,
    events: Arc<dyn SaveEvents>,
    thread: Option<JoinHandle<()>>,
}

fn lock(mutex: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Saver {
    /// `keep` newest checkpoints stay. `recorded` is the highest step that the coordinator has recorded: nothing at or
    /// after it is deleted; without a coordinator there is none.
    pub fn start(
        runtime: Handle,
        storage: Storage,
        keep: usize,
        recorded: Option<Arc<AtomicU64>>,
        events: Arc<dyn SaveEvents>,
    ) -> Self {
        let shared: Arc<(Mutex<Shared>, Condvar)> = Arc::default();
        let thread = {
            let (shared, events) = (shared.clone(), events.clone());
            std::thread::spawn(move || work(&runtime, &storage, keep, recorded.as_deref(), &shared, events.as_ref()))
        };
        Self { shared, events, thread: Some(thread) }
    }

    pub fn save(&self, snapshot: impl Into<Arc<Snapshot>>) {
        let (mutex, changed) = &*self.shared;
        let mut shared = lock(mutex);
        let snapshot = snapshot.into();
        let by = snapshot.step;
        if let Some(older) = shared.waiting.replace(snapshot) {
            self.events.replaced(older.step, by);
        }
        changed.notify_all();
    }

    /// Why no save can succeed any more, if so.
    pub fn has_failed_for_good(&self) -> Option<Failed> {
        let last = lock(&self.shared.0).last.clone();
        last.and_then(Result::err).filter(|failed| !failed.worth_a_try)
    }

    /// Waits until nothing is to be saved. The newest save, or why it failed; nothing if none was asked for.
    pub fn flush(&self) -> Option<Result<Saved, Failed>> {
        let (mutex, changed) = &*self.shared;
        let mut shared = lock(mutex);
        while shared.waiting.is_some() || shared.busy {
            shared = changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        shared.last.clone()
    }

    /// Like [`Saver::flush`], trying again until `deadline` when the store is unwell: for the last save of a run.
    pub fn finish(&self, snapshot: Snapshot, deadline: Duration) -> Result<Saved, String> {
        let end = Instant::now() + deadline;
        let snapshot = Arc::new(snapshot);
        let backoff = Backoff { first: Millis(500), most: Millis(20_000) };
        let mut tries = 0;
        loop {
            tries += 1;
            self.save(snapshot.clone());
            match self.flush() {
                Some(Ok(saved)) if saved.step >= snapshot.step => return Ok(saved),
                Some(Err(failed)) if !failed.worth_a_try || Instant::now() > end => return Err(failed.message),
                _ => std::thread::sleep(Duration::from_millis(backoff.wait(tries).0)),
            }
        }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        lock(&self.shared.0).closed = true;
        self.shared.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the saver was told by the panic hook; training has its own error by now.
            let _ = thread.join();
        }
    }
}

fn work(
    runtime: &Handle,
    storage: &Storage,
    keep: usize,
    recorded: Option<&AtomicU64>,
    shared: &(Mutex<Shared>, Condvar),
    events: &dyn SaveEvents,
) {
    let (mutex, changed) = shared;
    loop {
        let snapshot = {
            let mut shared = lock(mutex);
            loop {
                if let Some(snapshot) = shared.waiting.take() {
                    shared.busy = true;
                    break snapshot;
                }
                if shared.closed {
                    return;
                }
                shared = changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let begun = Instant::now();
        let created = jiff::Timestamp::now().to_string();
        let result = runtime.block_on(save(storage, &snapshot, created)).map_err(Failed::from);
        match &result {
            Ok(saved) => {
                events.saved(saved, begun.elapsed());
                let retention = Retention {
                    prefix: snapshot.prefix.clone(),
                    lineage: snapshot.lineage.clone(),
                    run: snapshot.run.clone(),
                    keep,
                    recorded: recorded.map(|step| step.load(Ordering::SeqCst)),
                    generation: snapshot.generation,
                };
                // Old checkpoints that stay a while longer harm nobody; the next save tries again.
                if let Err(error) = runtime.block_on(retention.apply(storage)) {
                    tracing::warn!(%error, "old checkpoints were not removed");
                }
            }
            Err(failed) => events.failed(snapshot.step, &failed.message),
        }
        let mut shared = lock(mutex);
        shared.busy = false;
        shared.last = Some(result);
        changed.notify_all();
    }
}
