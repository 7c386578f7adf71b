//! `coord watch`: the progress of a job as a moving bar, or as plain lines where nobody sees a terminal.

use std::time::{Duration, Instant};

use clap::Args;
use coord_proto::v1;
use indicatif::{ProgressBar, ProgressStyle};

use super::exit::{Exit, Problem};
use super::printer::{Output, Printer};
use super::session::Session;
use super::{describe, interrupt, names, shapes, wait};

/// Between two lines that differ only in how far the training is.
const PLAIN_LINE_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct WatchFlags {
    /// Job to follow
    pub job: String,
}

pub async fn run(flags: WatchFlags, session: &mut Session) -> Result<Exit, Problem> {
    let name = names::job(&flags.job)?;
    let printer = session.printer;
    tokio::select! {
        exit = follow(&name, session) => exit,
        () = interrupt::requested() => {
            printer.talk(&interrupt::goes_on(std::slice::from_ref(&name), &format!("coord watch {name}")));
            Ok(Exit::Interrupted)
        }
    }
}

async fn follow(name: &str, session: &mut Session) -> Result<Exit, Problem> {
    let mut view = View::new(session.printer);
    if let Some(bar) = view.bar.clone() {
        let printer = session.printer;
        // A line must not be written into the bar.
        session.client.tell_of_outages(move |text| bar.suspend(|| printer.talk(text)));
    }
    let mut version = 0;
    loop {
        let answer =
            session.client.watch(name, version).await.map_err(|error| wait::removed(name, version, error.into()))?;
        version = answer.version;
        let job = answer.job.unwrap_or_default();
        view.show(&job)?;
        if let Some(exit) = Exit::of_job(job.phase(), &job.ended_by) {
            view.finish();
            if session.printer.output() == Output::Quiet {
                session.printer.line(shapes::phase_name(job.phase()))?;
            }
            if let Some(failure) = &job.failure {
                session.printer.talk(describe::failure(failure).trim_end());
            }
            return Ok(exit);
        }
    }
}

/// Shows one state of a job after the other.
pub struct View {
    printer: Printer,
    bar: Option<ProgressBar>,
    /// What was printed last and when; steps alone are worth a line only now and then.
    printed: Option<(v1::Job, Instant)>,
}

impl View {
    pub fn new(printer: Printer) -> Self {
        let bar = printer.moving_bar().then(|| {
            let bar = ProgressBar::new(0).with_style(unlimited());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { printer, bar, printed: None }
    }

    pub fn show(&mut self, job: &v1::Job) -> Result<(), Problem> {
        if self.printer.output() == Output::Json {
            return self.printer.json_line(&shapes::job(job));
        }
        if self.printer.output() == Output::Quiet {
            return Ok(());
        }
        match &self.bar {
            Some(bar) => {
                let progress = job.progress.clone().unwrap_or_default();
                if progress.steps > 0 && bar.length() != Some(progress.steps) {
                    bar.set_length(progress.steps);
                    bar.set_style(limited());
                }
                bar.set_position(progress.step);
                bar.set_message(line(job));
            }
            None if self.printed.as_ref().is_none_or(|(before, at)| worth_a_line(before, job, at.elapsed())) => {
                self.printer.line(&line(job))?;
                self.printed = Some((job.clone(), Instant::now()));
            }
            None => {}
        }
        Ok(())
    }

    /// Prints something else without disturbing the bar.
    pub fn pause(&self, print: impl FnOnce() -> Result<(), Problem>) -> Result<(), Problem> {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Leaves the last state on the screen.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

/// `RUNNING  step 120 of 300 (40 %), ...`, `QUEUED  place 3 in the queue: ...`
pub fn line(job: &v1::Job) -> String {
    let mut parts = Vec::new();
    if job.queue_position > 0 {
        parts.push(format!("place {} in the queue", job.queue_position));
    }
    // The gauge of a job that waits is old; that of one that has ended is how far it came.
    match &job.progress {
        Some(gauge) if job.phase() != v1::Phase::Queued => parts.push(describe::progress(gauge, job.phase())),
        _ => {}
    }
    parts.extend(job.reasons.iter().map(|reason| reason.text.clone()));
    format!("{}  {}", shapes::phase_name(job.phase()), parts.join("; ")).trim_end().to_owned()
}

fn worth_a_line(before: &v1::Job, now: &v1::Job, since: Duration) -> bool {
    let news = before.phase != now.phase
        || before.reasons != now.reasons
        || before.queue_position != now.queue_position
        || before.interruptions.len() != now.interruptions.len();
    news || (since >= PLAIN_LINE_INTERVAL && line(before) != line(now))
}

fn limited() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {wide_msg}").expect("the template is valid")
}

fn unlimited() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_state_progress_and_reasons() {
        let mut job = v1::Job { phase: v1::Phase::Queued.into(), queue_position: 2, ..v1::Job::default() };
        job.reasons = vec![v1::Reason { text: "2 slots wanted, 1 free".into(), ..v1::Reason::default() }];
        assert_eq!(line(&job), "QUEUED  place 2 in the queue; 2 slots wanted, 1 free");
        let running = v1::Job {
            phase: v1::Phase::Running.into(),
            progress: Some(v1::Progress { step: 3, steps: 10, loss: 2.0, at_millis: 1, ..v1::Progress::default() }),
            ..v1::Job::default()
        };
        assert_eq!(line(&running), "RUNNING  step 3 of 10 (30 %), loss 2.0000");
    }

    #[test]
    fn a_change_of_state_is_worth_a_line_at_once_and_a_step_now_and_then() {
        let at = |phase: v1::Phase, step| v1::Job {
            phase: phase.into(),
            progress: Some(v1::Progress { step, ..v1::Progress::default() }),
            ..v1::Job::default()
        };
        let (short, long) = (Duration::from_millis(10), PLAIN_LINE_INTERVAL);
        let before = at(v1::Phase::Running, 1);
        assert!(worth_a_line(&before, &at(v1::Phase::Succeeded, 1), short));
        assert!(!worth_a_line(&before, &at(v1::Phase::Running, 2), short));
        assert!(worth_a_line(&before, &at(v1::Phase::Running, 2), long));
        assert!(!worth_a_line(&before, &before, long));
    }

    #[test]
    fn both_templates_of_the_bar_are_valid() {
        limited();
        unlimited();
    }
}
