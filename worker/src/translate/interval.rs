//! What happens after every `--steps_per_checkpoint` steps and at the end: progress line, decay, evaluation, save.

use std::time::Duration;

use coord_io::storage::Storage;
use tokio::runtime::Handle;

use super::ending::Ending;
use super::error::TrainError;
use super::evaluate::{Evaluation, Weights, evaluate, evaluate_old};
use super::lines;
use super::results::{Interval, Results};
use super::run::Run;
use super::state::State;
use crate::collective::Collective;
use crate::data::evaluation::Extent;
use crate::data::pairs::Pairs;
use crate::model::translate::{Prepared, Translate, Workspace};
use crate::train::saver::{Failed, Saver};

/// The last save of a run is tried again for so long when the store is unwell.
const LAST_SAVE_DEADLINE: Duration = Duration::from_secs(600);

/// Kept from one interval to the next. Only the master replica has a saver and results.
pub struct Intervals<'a> {
    run: &'a Run<'a>,
    model: &'a Translate,
    dev: Pairs,
    workspace: Workspace,
    saver: Option<Saver>,
    results: Option<Results>,
    last_saved: u64,
}

impl<'a> Intervals<'a> {
    /// `step` is the one that the run begins at.
    pub fn new(
        run: &'a Run<'a>,
        model: &'a Translate,
        dev: Pairs,
        runtime: &Handle,
        step: u64,
    ) -> Result<Self, TrainError> {
        let results = match &run.settings.job_dir {
            Some(job_dir) if run.master => Some(Results::start(runtime, Storage::open(job_dir)?)),
            _ => None,
        };
        let saver = run.master.then(|| run.saver(runtime));
        Ok(Self { run, model, dev, workspace: Workspace::default(), saver, results, last_saved: step })
    }

    /// `ending` says whether the run ends at this step anyway: its last state is then saved by [`Intervals::save_last`].
    /// Gives the ending that patience asks for, or the one given.
    pub fn end(
        &mut self,
        state: &mut State,
        prepared: &Prepared,
        step_seconds: f64,
        ending: Option<Ending>,
        collective: &mut dyn Collective,
    ) -> Result<Option<Ending>, TrainError> {
        let Run { settings, .. } = self.run;
        let (mean, rate) = (state.schedule.mean(), state.schedule.rate);
        self.run.say(&lines::interval(state.step, rate, step_seconds, mean));
        // The end of a run inside an interval leaves the state as it is, so that more steps later give the same bits as
        // one longer run.
        let whole = state.step.is_multiple_of(settings.steps_per_checkpoint);
        if whole && state.schedule.end_interval(settings.decay_factor, settings.rate_floor) {
            self.run.say(&format!("learning rate decays to {:.4}", state.schedule.rate));
        }
        // Evaluated before the save, because patience is part of the state; the lines keep their old order.
        let evaluation = self.evaluate(state, prepared, ending, collective)?;
        let mut ending = ending;
        if let (Some(loss), true) = (evaluation.mean, whole && settings.patience > 0) {
            state.patience.observe(loss);
            if state.patience.stale >= settings.patience && ending != Some(Ending::AllSteps) {
                ending = Some(Ending::Patience);
            }
        }
        if ending.is_none() {
            self.save(state)?;
        }
        self.say_evaluation(&evaluation, state);
        if let Some(results) = &mut self.results {
            let (step, evaluation) = (state.step, evaluation.buckets);
            results.interval(Interval { step, learning_rate: rate, step_seconds, mean_loss: mean, evaluation });
        }
        Ok(ending)
    }

    fn evaluate(
        &mut self,
        state: &State,
        prepared: &Prepared,
        ending: Option<Ending>,
        collective: &mut dyn Collective,
    ) -> Result<Evaluation, TrainError> {
        let Run { settings, .. } = self.run;
        let (dev, seed) = (&self.dev, settings.seed);
        let weights = Weights { model: self.model, params: &state.params, prepared };
        if settings.old_evaluation {
            return Ok(evaluate_old(weights, dev, seed, state.step, settings.batch_size, &mut self.workspace));
        }
        let whole_set = ending == Some(Ending::AllSteps) || settings.patience > 0 || settings.eval_pairs == 0;
        let extent = if whole_set { Extent::Whole } else { Extent::PairsPerBucket(settings.eval_pairs) };
        Ok(evaluate(weights, dev, extent, seed, collective, &mut self.workspace)?)
    }

    /// A state whose last steps were skipped is not worth a checkpoint: if the job fails for it, the last good one
    /// stays the newest.
    fn save(&mut self, state: &State) -> Result<(), TrainError> {
        let Some(saver) = &self.saver else {
            return Ok(());
        };
        if state.bad_steps > 0 {
            let (step, skipped) = (state.step, state.bad_steps);
            self.run.say(&format!("warning: no checkpoint at step {step}: the last {skipped} steps were skipped"));
            return Ok(());
        }
        if let Some(Failed { message, .. }) = saver.has_failed_for_good() {
            return Err(TrainError::Save { message });
        }
        saver.save(self.run.snapshot(state)?);
        self.last_saved = state.step;
        Ok(())
    }

    fn say_evaluation(&self, evaluation: &Evaluation, state: &State) {
        for (bucket, loss) in evaluation.buckets.iter().enumerate() {
            self.run.say(&lines::evaluation(bucket, *loss));
        }
        let (stale, patience) = (state.patience.stale, self.run.settings.patience);
        if patience > 0 && stale > 0 {
            let best = state.patience.best;
            self.run.say(&format!(
                "development loss has not improved for {stale} of {patience} intervals (best {best:.4})"
            ));
        }
    }

    /// The last save, trying again while the store is unwell.
    pub fn save_last(&mut self, state: &State) -> Result<(), TrainError> {
        let Some(saver) = self.saver.as_ref().filter(|_| self.last_saved < state.step) else {
            return Ok(());
        };
        let saved = saver.finish(self.run.snapshot(state)?, LAST_SAVE_DEADLINE);
        saved.map(drop).map_err(|message| TrainError::LastSave { message })
    }

    /// The last objects of the job dir; a run that was stopped will go on and has no result yet.
    pub fn close(self, ending: Ending, step: u64, digest: &str) {
        match self.results {
            Some(results) if ending == Ending::Stopped => drop(results.stop()),
            Some(results) => results.finish(step, digest),
            None => {}
        }
    }
}
