//! The training of a translate model, from the first look at the data to the last checkpoint.

use std::sync::Arc;

use coord_common::ids::Step;
use coord_common::progress::Progress;
use tokio::runtime::Handle;

use super::dump::{Recorder, Steps};
use super::ending::{Ending, Outcome};
use super::error::TrainError;
use super::interval::Intervals;
use super::observer::Observer;
use super::pace::Pace;
use super::run::Run;
use super::settings::Settings;
use super::setup::{Context, Ready, set_up};
use super::state::State;
use super::step::Stepper;
use crate::collective::{Collective, CollectiveError, Reduced};
use crate::data::batch::MicroBatch;
use crate::data::feed::{Feed, FeedSettings};
use crate::train::gradient::{Gradient, Sums};
use crate::train::note::{self, Note};
use crate::train::optimizer::{clip, descend};
use crate::train::tree::shares;

pub fn train(
    settings: &Settings,
    context: &Context,
    runtime: &Handle,
    collective: &mut dyn Collective,
    observer: &Arc<dyn Observer>,
) -> Result<Outcome, TrainError> {
    let Ready { model, pairs, dev, mut state, storage, lineage, settings_saved } =
        set_up(settings, context, runtime, collective, observer.as_ref())?;
    let (rank, world_size, micro_batches) = (collective.rank(), collective.world_size(), context.micro_batches);
    let master = rank == 0;
    let run = Run { settings, context, storage, lineage, settings_saved, observer, master, world_size };
    if settings.steps > 0 && state.step >= settings.steps {
        run.say(&format!("already at {}: --steps {} has nothing left to do", state.step, settings.steps));
        return Ok(Outcome::Done { step: state.step, digest: state.digest() });
    }
    let stepper =
        Stepper::new(micro_batches, shares(micro_batches, world_size)[rank as usize].clone(), context.threads);
    let mut feed = Feed::new(pairs, feed_settings(settings, micro_batches));
    let mut recorder = match &settings.dump {
        Some(dump) if master => {
            let steps = Steps { first: state.step, seed: settings.seed, micro_batches };
            Some(Recorder::start(dump, &model, &state.params, &mut feed, &dev, &steps)?)
        }
        _ => None,
    };
    let mut intervals = Intervals::new(&run, &model, dev, runtime, state.step)?;
    let mut prepared = model.prepare(&state.params);
    let mut pace = Pace::new();
    let mut samples_by_rank = vec![0u64; world_size as usize];
    let mut stop = false;
    run.say(&format!("{} steps an epoch", feed.steps_per_epoch()));
    observer.started(state.step, stepper.owned.clone());

    loop {
        let batches = own_batches(&mut feed, &stepper, state.step);
        let negatives = model.negatives(settings.seed, state.step, batches[0].1.target_len);
        let (parts, leaves) = stepper.gradients(&model, &state.params, &prepared, &batches, &negatives);
        let note = Note { leaves, stop: observer.stop_requested() };
        let reduced = collective.reduce(micro_batches, parts, note.encode())?;
        let Mean { mut gradient, loss, sums, notes } = Mean::of(reduced, micro_batches)?;
        if let Some(recorder) = &mut recorder {
            recorder.step(model.layout(), &gradient, loss)?;
        }
        let norm = clip(model.layout(), &mut gradient, settings.max_gradient_norm);
        if loss.is_finite() && norm.is_finite() {
            descend(&mut state.params, &gradient, state.schedule.rate as f32);
            model.refresh(&state.params, &mut prepared);
            state.good_step(loss);
        } else {
            state.bad_step();
            run.say(&format!("warning: step {} was skipped: loss {loss}, gradient norm {norm}", state.step));
            if state.bad_steps >= settings.bad_steps_max {
                return Err(TrainError::NotFinite { step: state.step, count: state.bad_steps });
            }
        }
        pace.step(sums.tokens);
        stop |= notes.iter().any(|note| note.stop);
        let mut ending = if settings.steps > 0 && state.step >= settings.steps {
            Some(Ending::AllSteps)
        } else {
            stop.then_some(Ending::Stopped)
        };
        let due = state.step.is_multiple_of(settings.steps_per_checkpoint);
        let (seconds_per_step, tokens_per_second) = (pace.seconds_per_step(), pace.tokens_per_second());
        for (total, note) in samples_by_rank.iter_mut().zip(&notes) {
            *total += note.samples();
        }
        let gauge = |state: &State, stage: &str| Progress {
            step: Step(state.step),
            steps: (settings.steps > 0).then_some(Step(settings.steps)),
            loss,
            learning_rate: state.schedule.rate,
            tokens_per_second,
            seconds_per_step,
            steps_per_epoch: feed.steps_per_epoch(),
            stage: stage.to_owned(),
            samples_by_rank: samples_by_rank.clone(),
            ..Progress::default()
        };
        let interval_ends = due || ending == Some(Ending::AllSteps);
        if interval_ends {
            observer.progress(gauge(&state, "evaluating"));
            ending = intervals.end(&mut state, &prepared, seconds_per_step, ending, collective)?;
            pace.restart();
        }
        if pace.take_turn() || interval_ends || ending.is_some() {
            observer.progress(gauge(&state, if ending.is_some() { "saving the last checkpoint" } else { "" }));
        }
        if let Some(ending) = ending {
            return finish(&run, intervals, &state, ending, collective);
        }
    }
}

fn feed_settings(settings: &Settings, micro_batches: u32) -> FeedSettings {
    FeedSettings {
        seed: settings.seed,
        batch_size: settings.batch_size,
        micro_batches: micro_batches as usize,
        drawing: settings.drawing,
    }
}

/// The micro-batches of a step that this rank computes, with their numbers.
fn own_batches(feed: &mut Feed, stepper: &Stepper, step: u64) -> Vec<(u32, MicroBatch)> {
    stepper.owned.clone().map(|micro| (micro, feed.micro_batch(step, micro as usize))).collect()
}

/// What all ranks made of a step together: the gradient is the mean over its samples.
struct Mean {
    gradient: Gradient,
    loss: f64,
    sums: Sums,
    notes: Vec<Note>,
}

impl Mean {
    fn of(reduced: Reduced, micro_batches: u32) -> Result<Self, CollectiveError> {
        let decode = |(rank, bytes): (usize, &Vec<u8>)| {
            Note::decode(bytes).ok_or(CollectiveError::Malformed { rank: rank as u32, what: "note" })
        };
        let notes: Vec<Note> = reduced.notes.iter().enumerate().map(decode).collect::<Result<_, _>>()?;
        let sums = note::fold(micro_batches, &notes);
        let mut gradient = reduced.gradient;
        gradient.scale(1.0 / sums.samples as f32);
        Ok(Self { gradient, loss: sums.loss / sums.samples as f64, sums, notes })
    }
}

fn finish(
    run: &Run<'_>,
    mut intervals: Intervals<'_>,
    state: &State,
    ending: Ending,
    collective: &mut dyn Collective,
) -> Result<Outcome, TrainError> {
    let step = state.step;
    if ending == Ending::Patience {
        let (stale, best) = (state.patience.stale, state.patience.best);
        run.say(&format!(
            "stopping at step {step}: {stale} intervals without a better development loss (best {best:.4})"
        ));
    }
    intervals.save_last(state)?;
    // Others wait here until the last checkpoint is complete, so that no rank ends before the run does.
    collective.gather(Vec::new())?;
    let digest = state.digest();
    intervals.close(ending, step, &digest);
    Ok(match ending {
        Ending::Stopped => Outcome::Stopped { step },
        Ending::AllSteps | Ending::Patience => Outcome::Done { step, digest },
    })
}
