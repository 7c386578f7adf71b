//! The training of a translate model, from the first look at the data to the last checkpoint.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coord_common::ids::Step;
use coord_common::progress::Progress;
use coord_io::storage::Storage;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::dump::{Recorder, Steps};
use super::error::TrainError;
use super::evaluate::{Evaluation, Weights, evaluate, evaluate_old};
use super::lines;
use super::observer::Observer;
use super::results::{Interval, Results};
use super::settings::{CHECKPOINT_PREFIX, Settings};
use super::setup::{Context, Ready, set_up};
use super::state::State;
use super::step::Stepper;
use crate::checkpoint::{Saved, Snapshot, state_digest};
use crate::collective::Collective;
use crate::data::batch::MicroBatch;
use crate::data::evaluation::Extent;
use crate::data::feed::{Feed, FeedSettings};
use crate::model::translate::Workspace;
use crate::train::note::{self, Note};
use crate::train::optimizer::{clip, descend};
use crate::train::saver::{SaveEvents, Saver};
use crate::train::tree::shares;

/// The last save of a run is tried again for so long when the store is unwell.
const LAST_SAVE_DEADLINE: Duration = Duration::from_secs(600);
/// Gauges leave at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All steps, or patience ran out.
    Done { step: u64, digest: String },
    /// Asked to stop; what was done is saved.
    Stopped { step: u64 },
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

/// Figures since the last progress line, for people only: nothing of it reaches the state.
struct Pace {
    begun: Instant,
    steps: u64,
    tokens: u64,
    sent: Instant,
}

impl Pace {
    fn new() -> Self {
        Self { begun: Instant::now(), steps: 0, tokens: 0, sent: Instant::now() - PROGRESS_EVERY }
    }

    fn seconds_per_step(&self) -> f64 {
        if self.steps == 0 { 0.0 } else { self.begun.elapsed().as_secs_f64() / self.steps as f64 }
    }
}

pub fn train(
    settings: &Settings,
    context: &Context,
    runtime: &Handle,
    collective: &mut dyn Collective,
    observer: &Arc<dyn Observer>,
) -> Result<Outcome, TrainError> {
    let Ready { model, pairs, dev, mut state, storage, lineage, settings_saved } =
        set_up(settings, context, runtime, collective, observer.as_ref())?;
    let micro_batches = context.micro_batches;
    let share: Range<u32> = shares(micro_batches, collective.world_size())[collective.rank() as usize].clone();
    let stepper = Stepper::new(micro_batches, share.clone(), context.threads);
    let feed_settings = FeedSettings {
        seed: settings.seed,
        batch_size: settings.batch_size,
        micro_batches: micro_batches as usize,
        drawing: settings.drawing,
    };
    let mut feed = Feed::new(pairs, feed_settings);
    let master = collective.rank() == 0;
    let run = Run { settings, context, storage: &storage, lineage: &lineage, saved: &settings_saved, observer };
    let saver = master.then(|| run.saver(runtime));
    let mut prepared = model.prepare(&state.params);
    let mut workspace = Workspace::default();
    let mut results = match &settings.job_dir {
        Some(job_dir) if master => Some(Results::start(runtime, Storage::open(job_dir)?)),
        _ => None,
    };
    let mut pace = Pace::new();
    let mut samples_by_rank = vec![0u64; collective.world_size() as usize];
    let (mut stop, mut last_saved) = (false, state.step);

    if settings.steps > 0 && state.step >= settings.steps {
        if master {
            observer.say(&format!("already at {}: --steps {} has nothing left to do", state.step, settings.steps));
        }
        let digest = digest_of(&state);
        return Ok(Outcome::Done { step: state.step, digest });
    }
    run.say(master, &format!("{} steps an epoch", feed.steps_per_epoch()));
    let mut recorder = match &settings.dump {
        Some(dump) if master => {
            let steps = Steps { first: state.step, seed: settings.seed, micro_batches };
            Some(Recorder::start(dump, &model, &state.params, &mut feed, &dev, &steps)?)
        }
        _ => None,
    };
    observer.started(state.step, share);
    loop {
        let step = state.step;
        let own: Vec<(u32, MicroBatch)> =
            stepper.owned.clone().map(|micro| (micro, feed.micro_batch(step, micro as usize))).collect();
        let negatives = model.negatives(settings.seed, step, own[0].1.target_len);
        let (parts, leaves) = stepper.gradients(&model, &state.params, &prepared, &own, &negatives);
        let note = Note { leaves, stop: observer.stop_requested() };
        let reduced = collective.reduce(micro_batches, parts, note.encode())?;
        let notes = decode_notes(&reduced.notes)?;
        let sums = note::fold(micro_batches, &notes);
        let mut gradient = reduced.gradient;
        let loss = sums.loss / sums.samples as f64;
        gradient.scale(1.0 / sums.samples as f32);
        if let Some(recorder) = &mut recorder {
            recorder.step(model.layout(), &gradient, loss)?;
        }
        let norm = clip(model.layout(), &mut gradient, settings.max_gradient_norm);
        if loss.is_finite() && norm.is_finite() {
            descend(&mut state.params, &gradient, state.schedule.rate as f32);
            state.schedule.observe(loss);
            state.bad_steps = 0;
            model.refresh(&state.params, &mut prepared);
        } else {
            state.bad_steps += 1;
        }
        state.step += 1;
        pace.steps += 1;
        pace.tokens += sums.tokens;
        stop |= notes.iter().any(|note| note.stop);
        let done = settings.steps > 0 && state.step >= settings.steps;

        if state.bad_steps > 0 {
            run.say(master, &format!("warning: step {} was skipped: loss {loss}, gradient norm {norm}", state.step));
            if state.bad_steps >= settings.bad_steps_max {
                return Err(TrainError::NotFinite { step: state.step, count: state.bad_steps });
            }
        }
        let mut patience_out = false;
        let interval_ends = state.step.is_multiple_of(settings.steps_per_checkpoint);
        if done || interval_ends {
            let (mean, rate, step_seconds) = (state.schedule.mean(), state.schedule.rate, pace.seconds_per_step());
            run.say(master, &lines::interval(state.step, rate, step_seconds, mean));
            // The end of a run inside an interval leaves the state as it is, so that more steps later give the same bits
            // as one longer run.
            if interval_ends && state.schedule.end_interval(settings.decay_factor, settings.rate_floor) {
                run.say(master, &format!("learning rate decays to {:.4}", state.schedule.rate));
            }
            // Evaluated before the save, because patience is part of the state; the lines keep their old order.
            let weights = Weights { model: &model, params: &state.params, prepared: &prepared };
            let evaluation = if settings.old_evaluation {
                evaluate_old(weights, &dev, settings.seed, state.step, settings.batch_size, &mut workspace)
            } else {
                let extent = if done || settings.patience > 0 || settings.eval_pairs == 0 {
                    Extent::Whole
                } else {
                    Extent::PairsPerBucket(settings.eval_pairs)
                };
                evaluate(weights, &dev, extent, settings.seed, collective, &mut workspace)?
            };
            if let (Some(loss), true) = (evaluation.mean, interval_ends && settings.patience > 0) {
                state.patience.observe(loss);
                patience_out = state.patience.stale >= settings.patience;
            }
            if let Some(saver) = &saver
                && !done
                && !patience_out
                && !stop
            {
                saver.save(run.snapshot(&state, collective.world_size())?);
                last_saved = state.step;
            }
            run.evaluated(master, &evaluation, &state);
            if let Some(results) = &mut results {
                let (step, evaluation) = (state.step, evaluation.buckets);
                results.interval(Interval { step, learning_rate: rate, step_seconds, mean_loss: mean, evaluation });
            }
            pace = Pace::new();
        }

        // ---- diagnostics below ----
        for (total, note) in samples_by_rank.iter_mut().zip(&notes) {
            *total += note.samples();
        }
        let ending = done || patience_out || stop;
        if ending || pace.sent.elapsed() >= PROGRESS_EVERY {
            pace.sent = Instant::now();
            observer.progress(Progress {
                step: Step(state.step),
                steps: (settings.steps > 0).then_some(Step(settings.steps)),
                loss,
                learning_rate: state.schedule.rate,
                tokens_per_second: pace.tokens as f64 / pace.begun.elapsed().as_secs_f64().max(1e-9),
                seconds_per_step: pace.seconds_per_step(),
                steps_per_epoch: feed.steps_per_epoch(),
                samples_by_rank: samples_by_rank.clone(),
                ..Progress::default()
            });
        }
        if ending {
            if patience_out {
                run.say(
                    master,
                    &format!(
                        "stopping at step {}: {} intervals without a better development loss (best {:.4})",
                        state.step, state.patience.stale, state.patience.best
                    ),
                );
            }
            if let Some(saver) = &saver
                && last_saved < state.step
            {
                let snapshot = run.snapshot(&state, collective.world_size())?;
                saver.finish(snapshot, LAST_SAVE_DEADLINE).map_err(|message| TrainError::LastSave { message })?;
            }
            // Others wait here until the last checkpoint is complete, so that no rank ends before the run does.
            collective.gather(Vec::new())?;
            let digest = digest_of(&state);
            let stopped = stop && !done && !patience_out;
            match results {
                Some(results) if stopped => drop(results.stop()),
                Some(results) => results.finish(state.step, &digest),
                None => {}
            }
            return Ok(match stopped {
                true => Outcome::Stopped { step: state.step },
                false => Outcome::Done { step: state.step, digest },
            });
        }
    }
}

fn digest_of(state: &State) -> String {
    state_digest(state.model_tensors().iter().chain(&state.state_tensors()))
}

fn decode_notes(notes: &[Vec<u8>]) -> Result<Vec<Note>, TrainError> {
    let malformed = |rank: usize| crate::collective::CollectiveError::Malformed { rank: rank as u32, what: "note" };
    notes.iter().enumerate().map(|(rank, bytes)| Note::decode(bytes).ok_or_else(|| malformed(rank).into())).collect()
}

/// What stays the same over a run.
struct Run<'a> {
    settings: &'a Settings,
    context: &'a Context,
    storage: &'a Storage,
    lineage: &'a str,
    saved: &'a Map<String, Value>,
    observer: &'a Arc<dyn Observer>,
}

impl Run<'_> {
    fn say(&self, master: bool, line: &str) {
        if master {
            self.observer.say(line);
        }
    }

    fn saver(&self, runtime: &Handle) -> Saver {
        let events = Arc::new(Forward(self.observer.clone()));
        let keep = self.settings.keep_checkpoints;
        Saver::start(runtime.clone(), self.storage.clone(), keep, self.context.recorded.clone(), events)
    }

    /// A copy of the state. Weights that are not finite are never saved.
    fn snapshot(&self, state: &State, world_size: u32) -> Result<Snapshot, TrainError> {
        if state.params.data.iter().any(|value| !value.is_finite()) {
            return Err(TrainError::WeightsNotFinite { step: state.step });
        }
        Ok(Snapshot {
            prefix: CHECKPOINT_PREFIX.to_owned(),
            step: state.step,
            generation: self.context.generation,
            lineage: self.lineage.to_owned(),
            job: self.context.job.clone(),
            numeric_class: self.context.numeric_class.clone(),
            world_size,
            settings: self.saved.clone(),
            model: state.model_tensors(),
            state: state.state_tensors(),
        })
    }

    fn evaluated(&self, master: bool, evaluation: &Evaluation, state: &State) {
        for (bucket, loss) in evaluation.buckets.iter().enumerate() {
            self.say(master, &lines::evaluation(bucket, *loss));
        }
        if self.settings.patience > 0 && state.patience.stale > 0 {
            let Self { settings, .. } = self;
            self.say(
                master,
                &format!(
                    "development loss has not improved for {} of {} intervals (best {:.4})",
                    state.patience.stale, settings.patience, state.patience.best
                ),
            );
        }
    }
}
