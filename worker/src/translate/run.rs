//! What stays the same over a run, and what is made of it: lines of output and copies of the state for the saver.

use std::sync::Arc;
use std::time::Duration;

use coord_io::storage::Storage;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::error::TrainError;
use super::observer::Observer;
use super::settings::{CHECKPOINT_PREFIX, Settings};
use super::setup::Context;
use super::state::State;
use crate::checkpoint::{Saved, Snapshot};
use crate::train::saver::{SaveEvents, Saver};

pub struct Run<'a> {
    pub settings: &'a Settings,
    pub context: &'a Context,
    pub storage: Storage,
    pub lineage: String,
    /// What every manifest says about the settings.
    pub settings_saved: Map<String, Value>,
    pub observer: &'a Arc<dyn Observer>,
    /// Rank 0: the one that speaks and saves.
    pub master: bool,
    pub world_size: u32,
}

impl Run<'_> {
    pub fn say(&self, line: &str) {
        if self.master {
            self.observer.say(line);
        }
    }

    pub fn saver(&self, runtime: &Handle) -> Saver {
        let events = Arc::new(Forward(self.observer.clone()));
        let keep = self.settings.keep_checkpoints;
        Saver::start(runtime.clone(), self.storage.clone(), keep, self.context.recorded.clone(), events)
    }

    /// A copy of the state. Weights that are not finite are never saved.
    pub fn snapshot(&self, state: &State) -> Result<Snapshot, TrainError> {
        if state.params.data.iter().any(|value| !value.is_finite()) {
            return Err(TrainError::WeightsNotFinite { step: state.step });
        }
        Ok(Snapshot {
            prefix: CHECKPOINT_PREFIX.to_owned(),
            step: state.step,
            generation: self.context.generation,
            lineage: self.lineage.clone(),
            run: self.context.run.clone(),
            job: self.context.job.clone(),
            numeric_class: self.context.numeric_class.clone(),
            world_size: self.world_size,
            settings: self.settings_saved.clone(),
            model: state.model_tensors(),
            state: state.state_tensors(),
        })
    }
}

struct Forward(Arc<dyn Observer>);

impl SaveEvents for Forward {
    fn saved(&self, saved: &Saved, took: Duration) {
        self.0.saved(saved, took);
    }

    fn failed(&self, step: u64, error: &str) {
        self.0.say(&format!("warning: checkpoint of step {step} was not saved: {error}"));
    }

    fn replaced(&self, step: u64, by: u64) {
        self.0.say(&format!("warning: saving is slow; the checkpoint of step {step} gives way to that of step {by}"));
    }
}
