//! `coord describe`: everything known about a job.

use clap::Args;
use coord_proto::v1;

use super::exit::{Exit, Problem};
use super::printer::{Output, Table};
use super::session::Session;
use super::{describe_tables, list, names, shapes, text};

#[derive(Debug, Args)]
pub struct DescribeFlags {
    /// Job to describe
    pub job: String,
}

pub async fn run(flags: DescribeFlags, session: &mut Session) -> Result<Exit, Problem> {
    let name = names::job(&flags.job)?;
    let job = session.client.describe(&name).await.map_err(|error| session.problem("describe job", error))?;
    match session.printer.output() {
        Output::Json => session.printer.json(&shapes::job(&job))?,
        Output::Quiet => session.printer.line(shapes::phase_name(job.phase()))?,
        Output::Table => session.printer.bytes(page(&job).as_bytes())?,
    }
    Ok(Exit::Done)
}

fn page(job: &v1::Job) -> String {
    let mut page = head(job).render();
    page.push_str(&describe_tables::replicas(job));
    page.push_str(&describe_tables::interruptions(job));
    page.push_str(&describe_tables::checkpoints(job));
    if let Some(failed) = &job.failure {
        page.push_str(&failure(failed));
    }
    page
}

fn head(job: &v1::Job) -> Table {
    let spec = job.spec.clone().unwrap_or_default();
    let mut table = Table::plain();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row([format!("{name}:"), value]);
        }
    };
    row("Job", spec.job.clone());
    let by = match job.ended_by.as_str() {
        "" => String::new(),
        "time_limit" => " (by its time limit)".to_owned(),
        who => format!(" (by {who})"),
    };
    row("State", format!("{}{by}", shapes::phase_name(job.phase())));
    for reason in &job.reasons {
        row("Reason", reason.text.clone());
    }
    if job.queue_position > 0 {
        row("Place in queue", job.queue_position.to_string());
    }
    row("Created", text::stamp(job.created_millis));
    row("Started", text::stamp(job.started_millis));
    row("Ended", text::stamp(job.ended_millis));
    row("Trainer", spec.trainer.clone());
    row("Program flags", text::shell_words(&spec.args));
    row("Workers", list::workers(job));
    row("Micro-batches", spec.micro_batches.to_string());
    row("Device", shapes::device_name(spec.device()));
    row("Job directory", job.job_dir.clone());
    let labels: Vec<String> = spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    row("Labels", labels.join(", "));
    if spec.priority > 0 {
        row("Priority", spec.priority.to_string());
    }
    if job.generation > 0 {
        row("Generation", job.generation.to_string());
        row("Restarts", format!("{} of {}", job.restarts, spec.max_restarts));
    }
    if let Some(gauge) = &job.progress {
        row("Progress", progress(gauge, job.phase()));
        if gauge.checkpoint_seconds > 0.0 {
            row("Newest save took", text::duration((gauge.checkpoint_seconds * 1000.0) as u64));
        }
    }
    table
}

/// The gauge in one line: `step 120 of 300 (40 %), loss 3.2100, 5,123 tokens/s, ETA 21 s`. Speed and time left
/// make sense only while the job runs.
pub fn progress(progress: &v1::Progress, phase: v1::Phase) -> String {
    let runs = phase == v1::Phase::Running;
    if progress.step == 0 && !progress.stage.is_empty() {
        return progress.stage.clone();
    }
    let mut parts = Vec::new();
    if progress.steps > 0 {
        let percent = progress.step as f64 * 100.0 / progress.steps as f64;
        parts.push(format!("step {} of {} ({percent:.0} %)", progress.step, progress.steps));
    } else {
        parts.push(format!("step {}", progress.step));
    }
    parts.extend(shapes::loss(progress).map(|loss| format!("loss {loss:.4}")));
    if runs && progress.tokens_per_second >= 1.0 {
        parts.push(format!("{} tokens/s", text::count(progress.tokens_per_second as u64)));
    }
    match text::eta_millis(progress.step, progress.steps, progress.seconds_per_step) {
        Some(millis) if runs && progress.step < progress.steps => parts.push(format!("ETA {}", text::duration(millis))),
        _ => {}
    }
    if !progress.stage.is_empty() {
        parts.push(progress.stage.clone());
    }
    parts.join(", ")
}

/// Why a job ended badly: what failed first, how, and its last lines.
pub fn failure(failure: &v1::Failure) -> String {
    let mut table = Table::plain().indented(2);
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row([format!("{name}:"), value]);
        }
    };
    row("Cause", failure.cause.replace('_', " "));
    row("Failed first", failure.replica.clone());
    row("Exit status", failure.exit_code.map(|code| code.to_string()).unwrap_or_default());
    row("Signal", failure.signal.map(|signal| signal.to_string()).unwrap_or_default());
    row("What happened", failure.text.clone());
    let mut text = format!("Failure:\n{}", table.render());
    if !failure.tail.trim().is_empty() {
        text.push_str(&format!("  Last lines of {}:\n", failure.replica));
        for line in failure.tail.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_one_line_with_the_time_that_is_left() {
        let mut gauge = v1::Progress {
            step: 120,
            steps: 300,
            loss: 3.21,
            tokens_per_second: 5_123.4,
            seconds_per_step: 0.12,
            at_millis: 1,
            ..v1::Progress::default()
        };
        assert_eq!(
            progress(&gauge, v1::Phase::Running),
            "step 120 of 300 (40 %), loss 3.2100, 5,123 tokens/s, ETA 21 s"
        );
        assert_eq!(progress(&gauge, v1::Phase::Failed), "step 120 of 300 (40 %), loss 3.2100");
        gauge.steps = 0;
        assert_eq!(progress(&gauge, v1::Phase::Running), "step 120, loss 3.2100, 5,123 tokens/s");
        let kept = v1::Progress { step: 300, ..v1::Progress::default() };
        assert_eq!(progress(&kept, v1::Phase::Succeeded), "step 300");
        let preparing = v1::Progress { stage: "tokenizing train.a".into(), ..v1::Progress::default() };
        assert_eq!(progress(&preparing, v1::Phase::Preparing), "tokenizing train.a");
    }

    /// JOB-06: the replica that failed first, its status and its last lines.
    #[test]
    fn a_failure_names_the_replica_that_failed_first_and_shows_its_last_lines() {
        let failed = v1::Failure {
            cause: "user_error".into(),
            replica: "worker-replica-2".into(),
            exit_code: Some(7),
            text: "the program ended with status 7".into(),
            tail: "line 499\nline 500\n".into(),
            ..v1::Failure::default()
        };
        assert_eq!(
            failure(&failed),
            "Failure:\n  Cause:          user error\n  Failed first:   worker-replica-2\n  Exit status:    7\n  \
             What happened:  the program ended with status 7\n  Last lines of worker-replica-2:\n    line 499\n    \
             line 500\n"
        );
    }
}
