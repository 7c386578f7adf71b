//! How the ends of replicas end a generation, and how a generation's end moves its job.

use coord_common::exit_rule::{self, Cause, Judgement};
use coord_common::{ExitReport, Millis, Phase, Rank, Step, WorkerId, replica_name};

use crate::effect::Effect;
use crate::entry::CancelBy;
use crate::job::{End, EndCause, Ending, Event, Failure, Interruption, Job, SetAside, Severity, Stage};
use crate::limits::{EVENTS_MAX, IDLE_GENERATIONS_MAX, INTERRUPTIONS_KEPT, REFUSAL_BACKOFF, RESTART_BACKOFF};
use crate::orders;

impl Job {
    /// Marks the replica as gone and draws the consequences for the generation and the job. `worker` is the name of the
    /// replica's worker, for people.
    pub(crate) fn replica_ended(&mut self, at: Millis, rank: Rank, worker: &str, end: End, out: &mut Vec<Effect>) {
        let order = self.replicas.iter().filter(|replica| !replica.is_live()).count() as u64;
        if let End::Exited(report) = &end {
            self.heard_of_step(report.last_step);
        }
        self.replicas[rank.index()].stage = Stage::Ended { end: end.clone(), order };
        match self.phase {
            Phase::Preparing | Phase::Running => self.judge_end(at, rank, worker, end, out),
            Phase::Cancelling => self.finish_cancelling(at),
            Phase::Queued | Phase::Succeeded | Phase::Failed | Phase::Cancelled => {}
        }
    }

    fn judge_end(&mut self, at: Millis, rank: Rank, worker: &str, end: End, out: &mut Vec<Effect>) {
        let name = replica_name(rank);
        match end {
            End::Lost { reason } => {
                let reason = format!("{name} was lost with worker {worker} ({reason})");
                self.end_generation(at, EndCause::LostWorker, reason, Some(rank), out);
            }
            End::Refused { reason } => {
                let id = self.replicas[rank.index()].worker.clone();
                self.set_worker_aside(at, id, reason.clone());
                let reason = format!("worker {worker} refused to start {name}: {reason}");
                self.end_generation(at, EndCause::Refused, reason, Some(rank), out);
            }
            End::Exited(report) => self.judge_exit(at, rank, worker, report, out),
        }
    }

    fn judge_exit(&mut self, at: Millis, rank: Rank, worker: &str, report: ExitReport, out: &mut Vec<Effect>) {
        let name = replica_name(rank);
        let how = match report.exit.cause {
            Cause::Killed if !report.message.is_empty() => {
                format!("{}, as {}", exit_rule::describe(&report.exit), report.message)
            }
            _ => exit_rule::describe(&report.exit),
        };
        let judgement = match exit_rule::judge(&report.exit) {
            Judgement::Success if rank == Rank::MASTER => return self.succeed(at, out),
            // A worker that is done early is fine, but only once it has met the others: before, they would wait for ever.
            Judgement::Success if self.begun => return,
            Judgement::Success => Judgement::Retryable,
            other => other,
        };
        if self.first_end_is_known() {
            return;
        }
        match judgement {
            Judgement::Success => {}
            Judgement::Consequence => {
                let reason = format!("{name} lost its connection to another replica");
                self.end_generation(at, EndCause::PeerLost, reason, None, out);
            }
            Judgement::Preempted => {
                let reason = format!("{name} was stopped by its worker {worker}");
                self.end_generation(at, EndCause::Preempted, reason, Some(rank), out);
            }
            Judgement::Retryable if self.restarts >= self.spec.max_restarts => {
                let (used, most) = (self.restarts, self.spec.max_restarts);
                let text = format!("The replica {name} ended with {how}; {used} of {most} restarts are used.");
                self.fail(at, self.failure_of(rank, &report, "restarts", text), out);
            }
            Judgement::Retryable => {
                self.restarts += 1;
                self.retry_at = at + RESTART_BACKOFF.wait(self.restarts - 1);
                let reason =
                    format!("{name} ended with {how} (restart {} of {})", self.restarts, self.spec.max_restarts);
                self.end_generation(at, EndCause::Program, reason, Some(rank), out);
            }
            Judgement::Permanent => {
                let (cause, text) = permanent_failure(&name, &report);
                self.fail(at, self.failure_of(rank, &report, cause, text), out);
            }
        }
    }

    /// Until then an end may still turn out to be the one that the others follow from.
    fn first_end_is_known(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.cause != EndCause::PeerLost)
    }

    /// Ends the present generation; the first cause that is no mere consequence stands.
    pub(crate) fn end_generation(
        &mut self,
        at: Millis,
        cause: EndCause,
        reason: String,
        first: Option<Rank>,
        out: &mut Vec<Effect>,
    ) {
        if !matches!(self.phase, Phase::Preparing | Phase::Running) || self.first_end_is_known() {
            return;
        }
        let is_new = self.ending.is_none();
        if !is_new && cause == EndCause::PeerLost {
            return;
        }
        self.ending = Some(Ending { cause, reason: reason.clone(), first });
        if is_new {
            self.phase = Phase::Preparing;
            self.say(at, Severity::Warning, format!("Generation {} ended: {reason}.", self.generation));
            self.interrupt(at, cause, reason);
            self.stop_live(out);
        } else {
            self.say(at, Severity::Warning, format!("Generation {} ended first because {reason}.", self.generation));
            self.name_true_reason(&reason);
        }
        if is_new && cause != EndCause::Program && cause != EndCause::Refused {
            self.count_idle_generation(at, out);
        }
    }

    fn interrupt(&mut self, at: Millis, cause: EndCause, reason: String) {
        if cause == EndCause::Refused {
            return;
        }
        let step_before = self.best_step;
        self.interruptions.push(Interruption { at, generation: self.generation, reason, step_before, over: None });
        if self.interruptions.len() > INTERRUPTIONS_KEPT {
            self.interruptions.remove(0);
        }
    }

    /// An interruption that began with mere consequences gets the reason that they followed from.
    fn name_true_reason(&mut self, reason: &str) {
        if self.ending.is_some()
            && let Some(interruption) = self.interruptions.last_mut()
        {
            interruption.reason = reason.to_owned();
        }
    }

    /// Ends that are not the program's fault are free, but not for ever: without a new step they come to an end.
    fn count_idle_generation(&mut self, at: Millis, out: &mut Vec<Effect>) {
        self.idle_generations = if self.best_step > self.best_step_before { 0 } else { self.idle_generations + 1 };
        if self.idle_generations < IDLE_GENERATIONS_MAX {
            return;
        }
        let last = self.ending.as_ref().map_or("", |ending| ending.reason.as_str());
        let text =
            format!("{IDLE_GENERATIONS_MAX} generations in a row ended without a new step; the last because {last}.");
        let failure = Failure {
            cause: "restarts",
            replica: self.ending.as_ref().and_then(|ending| ending.first),
            generation: self.generation,
            exit_code: None,
            signal: None,
            text,
            tail: String::new(),
        };
        self.fail(at, failure, out);
    }

    pub(crate) fn heard_of_step(&mut self, step: Step) {
        if step > self.best_step {
            self.best_step = step;
        }
        if self.best_step > self.best_step_before {
            self.idle_generations = 0;
        }
        let generation = self.generation;
        let open = self.interruptions.last_mut().filter(|last| last.over.is_none() && last.generation == generation);
        if let Some(interruption) = open {
            interruption.step_before = interruption.step_before.max(step);
        }
    }

    fn set_worker_aside(&mut self, at: Millis, worker: WorkerId, reason: String) {
        let refusals = self.set_aside.get(&worker).map_or(0, |earlier| earlier.refusals) + 1;
        let until = at + REFUSAL_BACKOFF.wait(refusals);
        self.set_aside.insert(worker, SetAside { refusals, until, reason });
    }

    fn succeed(&mut self, at: Millis, out: &mut Vec<Effect>) {
        self.say(at, Severity::Info, "Tearing down training program.".to_owned());
        self.finish(at, Phase::Succeeded, "the job succeeded", Some(Rank::MASTER), out);
        self.say(at, Severity::Info, "Job completed successfully.".to_owned());
    }

    pub(crate) fn fail(&mut self, at: Millis, failure: Failure, out: &mut Vec<Effect>) {
        let first = failure.replica;
        let text = failure.text.clone();
        self.failure = Some(failure);
        self.finish(at, Phase::Failed, &text, first, out);
        self.say(at, Severity::Error, text);
    }

    fn finish(&mut self, at: Millis, phase: Phase, reason: &str, first: Option<Rank>, out: &mut Vec<Effect>) {
        self.phase = phase;
        self.ended = Some(at);
        let told_to_stop = self.ending.is_some();
        if !self.first_end_is_known() {
            self.name_true_reason(reason);
            self.ending = Some(Ending { cause: EndCause::JobEnded, reason: reason.to_owned(), first });
        }
        if !told_to_stop {
            self.stop_live(out);
        }
    }

    /// Accepted at any moment before the end, and from then on a fact.
    pub(crate) fn cancel(&mut self, at: Millis, by: CancelBy, out: &mut Vec<Effect>) {
        self.cancelled_by = Some(by);
        match by {
            CancelBy::User => self.say(at, Severity::Info, "Cancel requested.".to_owned()),
            CancelBy::TimeLimit => {
                let limit = self.spec.max_running.seconds_rounded_up();
                self.say(at, Severity::Error, format!("The job has run for its limit of {limit} s."));
            }
        }
        if self.has_live_replicas() {
            self.phase = Phase::Cancelling;
            self.stop_live(out);
        } else {
            self.phase = Phase::Cancelled;
            self.end_cancelled(at);
        }
    }

    fn finish_cancelling(&mut self, at: Millis) {
        if !self.has_live_replicas() {
            self.phase = Phase::Cancelled;
            self.end_cancelled(at);
        }
    }

    fn end_cancelled(&mut self, at: Millis) {
        self.ended = Some(at);
        self.say(at, Severity::Info, "Job cancelled.".to_owned());
    }

    fn stop_live(&self, out: &mut Vec<Effect>) {
        for (rank, replica) in self.live() {
            out.push(Effect::Send { worker: replica.worker.clone(), order: orders::stop(self, rank) });
        }
    }

    /// One line of the platform's log. The list only grows, so that a count of lines is a position in it.
    pub(crate) fn say(&mut self, at: Millis, severity: Severity, text: String) {
        let has_room = self.events.len() < EVENTS_MAX;
        if has_room || self.phase.is_final() {
            self.events.push(Event { at, severity, text });
        } else if self.events.len() == EVENTS_MAX {
            let text = "Further lines are left out until the job ends.".to_owned();
            self.events.push(Event { at, severity: Severity::Warning, text });
        }
    }

    fn failure_of(&self, rank: Rank, report: &ExitReport, cause: &'static str, text: String) -> Failure {
        Failure {
            cause,
            replica: Some(rank),
            generation: self.generation,
            exit_code: report.exit.code,
            signal: report.exit.signal,
            text: if report.message.is_empty() { text } else { format!("{text} {}", report.message) },
            tail: report.tail.clone(),
        }
    }
}

/// Cause class and first sentence, in the words that users of managed services search for.
fn permanent_failure(name: &str, report: &ExitReport) -> (&'static str, String) {
    let status = match (report.exit.signal, report.exit.code) {
        (None, Some(0)) => "exited with a status of 0".to_owned(),
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) => format!("exited with a non-zero status of {code}"),
        (None, None) => "ended with an unknown status".to_owned(),
    };
    match report.exit.cause {
        Cause::OutOfMemory => ("out_of_memory", format!("The replica {name} ran out of memory and {status}.")),
        Cause::Data => ("data", format!("The replica {name} could not use its data and {status}.")),
        Cause::Storage => ("storage", format!("The replica {name} could not use its storage and {status}.")),
        _ => ("user_error", format!("The replica {name} {status}.")),
    }
}
