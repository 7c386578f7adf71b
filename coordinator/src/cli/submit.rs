//! `coord submit`: flags become a checked spec, and the spec becomes a job exactly once.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use coord_common::convert::spec_to_wire;
use coord_common::job::{MICRO_BATCHES_DEFAULT, RESTARTS_DEFAULT};
use coord_common::{Device, JobId, JobSettings, JobSpec, Millis};
use coord_proto::v1;
use uuid::Uuid;

use super::call_error::CallError;
use super::exit::{Exit, Problem};
use super::paths::{self, Resolved};
use super::printer::Output;
use super::session::Session;
use super::{logs, names, program_check, shapes, text};

#[derive(Debug, Args)]
#[command(after_help = "Everything after `--` reaches the program byte for byte:\n  \
    coord submit dialogs --trainer translate --workers 1:4 -- --from_train_data=s3://bucket/train.a ...")]
pub struct SubmitFlags {
    /// Name of the job: letters, digits, underscore, first a letter; never used before
    pub job: String,
    /// Built-in trainer that runs the job
    #[arg(long, value_name = "NAME")]
    pub trainer: Option<String>,
    /// Replicas, the master included: a number, or MIN:MAX for as many as there is room for
    #[arg(long, default_value = "1", value_parser = workers, value_name = "N|MIN:MAX")]
    pub workers: RangeInclusive<u32>,
    /// Slots that each replica takes on its host
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub slots_per_worker: u32,
    /// Threads of each replica; without it, the share of its slots
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// What the replicas compute on
    #[arg(long, default_value = "cpu", value_parser = device, value_name = "cpu|cuda")]
    pub device: Device,
    /// Fixed parts of each global batch: the weights depend on it, and it bounds the workers
    #[arg(long, default_value_t = MICRO_BATCHES_DEFAULT, value_name = "V")]
    pub micro_batches: u32,
    /// Where checkpoints, logs and results go; without it, below the cluster's storage
    #[arg(long, value_name = "URL")]
    pub job_dir: Option<String>,
    /// Labels for `coord list --label`
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE,...")]
    pub labels: Vec<String>,
    /// 0 to 1000; larger goes first
    #[arg(long, default_value_t = 0, value_name = "P")]
    pub priority: u32,
    /// Longest time in state RUNNING: seconds, or a number with s, m, h or d
    #[arg(long, default_value = "7d", value_parser = duration, value_name = "TIME")]
    pub max_running_time: Millis,
    /// Times that a lost or crashed replica is started again
    #[arg(long, default_value_t = RESTARTS_DEFAULT, value_name = "N")]
    pub max_restarts: u32,
    /// Follow the log and exit by how the job ended
    #[arg(long, conflicts_with = "async_")]
    pub stream_logs: bool,
    /// Return as soon as the job is accepted; this is what happens anyway
    #[arg(long = "async")]
    pub async_: bool,
    /// Add the local time to the name: JOB_20261224_203332
    #[arg(long)]
    pub unique: bool,
    /// Start anew even where checkpoints of another training lie
    #[arg(long)]
    pub fresh: bool,
    /// Arguments of the program
    #[arg(last = true, value_name = "PROGRAM_FLAGS")]
    pub arguments: Vec<OsString>,
}

/// What the flags mean, checked.
#[derive(Debug)]
struct Settings {
    spec: JobSpec,
    /// Remarks for the user that are no errors.
    warnings: Vec<String>,
}

impl Settings {
    fn check(flags: SubmitFlags, session: &Session) -> Result<Self, Problem> {
        let name = if flags.unique {
            flags.job + text::unique_suffix(jiff::Timestamp::now(), &session.zone).as_str()
        } else {
            flags.job
        };
        let job = JobId::parse(&name).map_err(|error| names::coded(&error))?;
        let trainer = flags.trainer.ok_or_else(|| no_program(&name, &flags.arguments))?;
        coord_common::job::check_trainer(&trainer).map_err(|error| names::coded(&error))?;
        let mut warnings = Vec::new();
        let mut settings = JobSettings::new(job, &trainer);
        settings.args = flags.arguments.into_iter().map(OsString::into_vec).collect();
        warnings.extend(paths::relative_arguments(&settings.args));
        settings.workers = flags.workers;
        settings.slots_per_worker = flags.slots_per_worker;
        settings.cpus = flags.cpus;
        settings.device = flags.device;
        settings.micro_batches = flags.micro_batches;
        settings.job_dir = match flags.job_dir.as_deref().map(paths::resolve).transpose()? {
            Some(Resolved { url, local }) => {
                warnings.extend(local.then(|| paths::warning("--job-dir", &url)));
                Some(url)
            }
            None => None,
        };
        settings.labels = names::labels(&flags.labels)?;
        settings.priority = flags.priority;
        settings.max_running = flags.max_running_time;
        settings.max_restarts = flags.max_restarts;
        settings.fresh = flags.fresh;
        let spec = JobSpec::new(settings).map_err(|error| names::coded(&error))?;
        Ok(Self { spec, warnings })
    }
}

pub async fn run(flags: SubmitFlags, session: &mut Session) -> Result<Exit, Problem> {
    let stream_logs = flags.stream_logs;
    let settings = Settings::check(flags, session).map_err(|problem| problem.context("cannot submit job"))?;
    program_check::check(&settings.spec).await.map_err(|problem| problem.context("cannot submit job"))?;
    for warning in &settings.warnings {
        session.printer.talk(&format!("warning: {warning}"));
    }
    let job = settings.spec.job.to_string();
    // One id for all tries: whatever happens to an answer, the job is submitted once.
    let request =
        v1::SubmitJobRequest { request_id: Uuid::new_v4().to_string(), spec: Some(spec_to_wire(&settings.spec)) };
    let answer = session.client.submit(request).await.map_err(|error| failed(&job, error))?;
    for warning in &answer.warnings {
        session.printer.talk(&format!("warning: {warning}"));
    }
    session.printer.talk(&format!("Job [{job}] submitted successfully."));
    match session.printer.output() {
        Output::Json => session.printer.json(&answer.job.as_ref().map_or_else(Default::default, shapes::job))?,
        Output::Quiet => session.printer.line(&job)?,
        Output::Table => {}
    }
    if stream_logs {
        return logs::follow(&job, String::new(), session).await;
    }
    session.printer.talk(&format!(
        "Your job is still active. See how it goes with\n\n  $ coord describe {job}\n\nor follow its log with\n\n  \
         $ coord logs {job} -f\n"
    ));
    Ok(Exit::Done)
}

fn failed(job: &str, error: CallError) -> Problem {
    let hint = match &error {
        CallError::Unanswered { maybe_done: true, .. } => {
            Some(format!("the job may have been accepted all the same: `coord describe {job}` tells"))
        }
        refused if refused.code() == "job_exists" && refused.hint().is_none() => {
            Some("a name is used once: `--unique` adds the time to it".to_owned())
        }
        _ => None,
    };
    let problem = Problem::from(error).context("cannot submit job");
    match hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

fn no_program(job: &str, arguments: &[OsString]) -> Problem {
    let flags: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.clone().into_vec()).collect();
    let separator = if flags.is_empty() { String::new() } else { format!(" -- {}", text::shell_words(&flags)) };
    Problem::usage("no program to run: `--trainer` is missing")
        .hint(format!("name a built-in trainer: `coord submit {job} --trainer translate{separator}`"))
}

/// `N` or `MIN:MAX`.
fn workers(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |part: &str| part.parse::<u32>().map_err(|_| "must be a number, or MIN:MAX".to_owned());
    match text.split_once(':') {
        Some((min, max)) => Ok(number(min)?..=number(max)?),
        None => number(text).map(|count| count..=count),
    }
}

fn device(text: &str) -> Result<Device, String> {
    [Device::Cpu, Device::Cuda]
        .into_iter()
        .find(|device| device.as_str() == text)
        .ok_or_else(|| "must be cpu or cuda".to_owned())
}

/// `90`, `90s`, `15m`, `2h`, `7d`.
pub fn duration(text: &str) -> Result<Millis, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((last, 's')) => (&text[..last], 1),
        Some((last, 'm')) => (&text[..last], 60),
        Some((last, 'h')) => (&text[..last], 3_600),
        Some((last, 'd')) => (&text[..last], 86_400),
        _ => (text, 1),
    };
    match digits.parse::<u64>() {
        Ok(amount) if amount > 0 => Ok(Millis::from_seconds(amount.saturating_mul(unit))),
        _ => Err("must be a number of seconds above 0, or a number with s, m, h or d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_a_number_or_a_range() {
        assert_eq!(workers("3"), Ok(3..=3));
        assert_eq!(workers("1:4"), Ok(1..=4));
        for bad in ["", "x", "1:", ":2", "1:2:3", "-1"] {
            assert!(workers(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_take_a_unit() {
        assert_eq!(duration("90"), Ok(Millis::from_seconds(90)));
        assert_eq!(duration("604800s"), Ok(Millis::from_seconds(604_800)));
        assert_eq!(duration("15m"), Ok(Millis::from_seconds(900)));
        assert_eq!(duration("7d"), Ok(Millis::from_seconds(604_800)));
        for bad in ["", "0", "h", "1.5h", "-3s", "3w"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_missing_program_is_named_with_the_command_that_would_work() {
        let problem = no_program("j1", &["--steps".into(), "10".into()]);
        assert_eq!(
            problem.render(),
            "error: no program to run: `--trainer` is missing\n\
             hint: name a built-in trainer: `coord submit j1 --trainer translate -- --steps 10`\n"
        );
    }
}
