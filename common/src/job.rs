//! What a user asks for, checked once: a `JobSpec` that exists is valid.

use std::collections::BTreeMap;
use std::ops::{Deref, RangeInclusive};

use crate::error::Coded;
use crate::ids::{IdError, JobId};
use crate::resources::{Device, SLOTS_MAX};
use crate::time::Millis;

pub const MICRO_BATCHES_DEFAULT: u32 = 8;
pub const MICRO_BATCHES_MAX: u32 = 1_024;
pub const PRIORITY_MAX: u32 = 1_000;
pub const ARGUMENTS_MAX: usize = 10_000;
pub const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;
pub const LABELS_MAX: usize = 64;
pub const LABEL_LENGTH_MAX: usize = 63;
pub const CPUS_MAX: u32 = 4_096;
pub const RESTARTS_DEFAULT: u32 = 3;
pub const RESTARTS_MAX: u32 = 1_000;
pub const GRACE_DEFAULT: Millis = Millis::from_seconds(10);
pub const GRACE_MAX: Millis = Millis::from_seconds(3_600);
pub const RUNNING_DEFAULT: Millis = Millis::from_seconds(7 * 24 * 3_600);
pub const RUNNING_MAX: Millis = Millis::from_seconds(365 * 24 * 3_600);
/// Longest trainer name and URL.
pub const TEXT_MAX: usize = 1_024;

/// The fields of a spec before they are checked; `JobSettings::new` fills in the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSettings {
    pub job: JobId,
    pub trainer: String,
    /// Everything after `--`, byte for byte.
    pub args: Vec<Vec<u8>>,
    /// World size, master included.
    pub workers: RangeInclusive<u32>,
    pub slots_per_worker: u32,
    /// Threads of each replica; nothing = the worker's share.
    pub cpus: Option<u32>,
    pub device: Device,
    pub micro_batches: u32,
    /// URL; nothing = `<storage>/jobs/<job>`.
    pub job_dir: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// 0 to 1000, larger first.
    pub priority: u32,
    /// Counted from `Running`.
    pub max_running: Millis,
    pub max_restarts: u32,
    /// Start anew even where another lineage's checkpoints lie.
    pub fresh: bool,
    /// Between SIGTERM and SIGKILL.
    pub grace: Millis,
}

impl JobSettings {
    pub fn new(job: JobId, trainer: &str) -> JobSettings {
        JobSettings {
            job,
            trainer: trainer.to_owned(),
            args: Vec::new(),
            workers: 1..=1,
            slots_per_worker: 1,
            cpus: None,
            device: Device::Cpu,
            micro_batches: MICRO_BATCHES_DEFAULT,
            job_dir: None,
            labels: BTreeMap::new(),
            priority: 0,
            max_running: RUNNING_DEFAULT,
            max_restarts: RESTARTS_DEFAULT,
            fresh: false,
            grace: GRACE_DEFAULT,
        }
    }
}

/// The value of a program flag among the arguments after `--`, as the built-in trainers read them: `-` and `_` are the
/// same in a flag's name, and the last one counts.
pub fn program_flag(args: &[impl AsRef<[u8]>], flag: &str) -> Option<String> {
    let mut found = None;
    let mut value_follows = false;
    for argument in args.iter().map(|argument| String::from_utf8_lossy(argument.as_ref())) {
        if value_follows {
            found = Some(argument.into_owned());
            value_follows = false;
            continue;
        }
        let bare = argument.strip_prefix("--").unwrap_or_default();
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        if name.replace('-', "_") == flag {
            found = value.map(str::to_owned).or(found);
            value_follows = value.is_none();
        }
    }
    found
}

/// Where a job's checkpoints lie: the program's own `--train_dir` goes before the job directory.
pub fn train_url(args: &[impl AsRef<[u8]>], job_dir: &str) -> String {
    program_flag(args, "train_dir").unwrap_or_else(|| job_dir.to_owned())
}

/// Trainers of this release. A spec may name another: it may have been written by another release, and what lies in the
/// log must be read for ever. A new job is refused by [`check_trainer`].
pub const TRAINERS: [&str; 1] = ["translate"];

/// For new jobs, at the client and at the coordinator.
pub fn check_trainer(trainer: &str) -> Result<(), SpecError> {
    if TRAINERS.contains(&trainer) { Ok(()) } else { Err(SpecError::UnknownTrainer { got: trainer.to_owned() }) }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error(transparent)]
    Id(#[from] IdError),
    #[error("workers must be between 1 and {micro_batches} (the job's micro-batches), got {got}")]
    Workers { micro_batches: u32, got: u32 },
    #[error("workers must be MIN:MAX with MIN at most MAX, got {min}:{max}")]
    WorkersOrder { min: u32, max: u32 },
    #[error("{field} must be between {min} and {max}, got {got}")]
    Range { field: &'static str, min: u64, max: u64, got: u64 },
    #[error("trainer must be 1 to {TEXT_MAX} printable characters without spaces, got {got:?}")]
    Trainer { got: String },
    #[error("no trainer is named {got}; this release has: {}", TRAINERS.join(", "))]
    UnknownTrainer { got: String },
    #[error("job-dir must be a URL of at most {TEXT_MAX} characters, got {got:?}")]
    JobDir { got: String },
    #[error(
        "label key {got:?} is not valid (a lower-case letter, then up to 62 lower-case letters, digits, underscores or dashes)"
    )]
    LabelKey { got: String },
    #[error("value {got:?} of label {key:?} is not valid (up to 63 lower-case letters, digits, underscores or dashes)")]
    LabelValue { key: String, got: String },
    #[error("a job has at most {LABELS_MAX} labels, got {got}")]
    LabelCount { got: usize },
    #[error("program arguments must be at most {ARGUMENTS_MAX}, got {got}")]
    ArgumentCount { got: usize },
    #[error("program arguments must be at most {ARGUMENTS_BYTES_MAX} bytes together, got {got}")]
    ArgumentBytes { got: usize },
    #[error("device is not given")]
    NoDevice,
}

impl Coded for SpecError {
    fn code(&self) -> &'static str {
        match self {
            SpecError::Id(error) => error.code(),
            _ => "invalid_spec",
        }
    }

    fn retryable(&self) -> bool {
        false
    }

    fn hint(&self) -> Option<String> {
        match self {
            SpecError::Id(error) => error.hint(),
            SpecError::Workers { got: 0, .. } => Some("use `--workers 1` for a single replica".to_owned()),
            SpecError::Workers { got, .. } => {
                let enough = got.checked_next_power_of_two().filter(|enough| *enough <= MICRO_BATCHES_MAX);
                enough.map(|enough| format!("use `--micro-batches {enough}` to allow more workers"))
            }
            SpecError::WorkersOrder { min, max } => Some(format!("use `--workers {max}:{min}`")),
            SpecError::JobDir { got } if got.starts_with('/') => Some(format!("use `file://{got}`")),
            SpecError::JobDir { .. } => Some(
                "use an object-storage URL such as `s3://bucket/prefix`, or `file:///path` on a file system that all \
                 workers share"
                    .to_owned(),
            ),
            SpecError::ArgumentCount { .. } | SpecError::ArgumentBytes { .. } => {
                Some("put large settings into a file in object storage and pass its URL".to_owned())
            }
            _ => None,
        }
    }
}

/// Checked settings. Read access only: what has been checked stays as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec(JobSettings);

impl JobSpec {
    pub fn new(settings: JobSettings) -> Result<JobSpec, SpecError> {
        check_size(&settings)?;
        check_ranges(&settings)?;
        check_texts(&settings)?;
        check_labels(&settings.labels)?;
        check_arguments(&settings.args)?;
        Ok(JobSpec(settings))
    }

    pub fn workers_min(&self) -> u32 {
        *self.0.workers.start()
    }

    pub fn workers_max(&self) -> u32 {
        *self.0.workers.end()
    }

    /// Where the job's objects lie: its own `job_dir`, else below the cluster's storage.
    pub fn resolve_job_dir(&self, storage: &str) -> String {
        let below_storage = || format!("{}/jobs/{}", storage.trim_end_matches('/'), self.0.job);
        self.0.job_dir.clone().unwrap_or_else(below_storage)
    }
}

impl Deref for JobSpec {
    type Target = JobSettings;

    fn deref(&self) -> &JobSettings {
        &self.0
    }
}

fn check_size(settings: &JobSettings) -> Result<(), SpecError> {
    let micro_batches = settings.micro_batches;
    range("micro-batches", 1, MICRO_BATCHES_MAX.into(), micro_batches.into())?;
    let (min, max) = (*settings.workers.start(), *settings.workers.end());
    for got in [min, max] {
        if got < 1 || got > micro_batches {
            return Err(SpecError::Workers { micro_batches, got });
        }
    }
    if min > max {
        return Err(SpecError::WorkersOrder { min, max });
    }
    Ok(())
}

fn check_ranges(settings: &JobSettings) -> Result<(), SpecError> {
    range("slots-per-worker", 1, SLOTS_MAX.into(), settings.slots_per_worker.into())?;
    if let Some(cpus) = settings.cpus {
        range("cpus", 1, CPUS_MAX.into(), cpus.into())?;
    }
    range("priority", 0, PRIORITY_MAX.into(), settings.priority.into())?;
    range("max-restarts", 0, RESTARTS_MAX.into(), settings.max_restarts.into())?;
    range("max-running-time in milliseconds", 1, RUNNING_MAX.0, settings.max_running.0)?;
    range("grace in milliseconds", 1, GRACE_MAX.0, settings.grace.0)
}

fn range(field: &'static str, min: u64, max: u64, got: u64) -> Result<(), SpecError> {
    if (min..=max).contains(&got) { Ok(()) } else { Err(SpecError::Range { field, min, max, got }) }
}

fn check_texts(settings: &JobSettings) -> Result<(), SpecError> {
    let trainer = &settings.trainer;
    let printable = trainer.bytes().all(|byte| byte.is_ascii_graphic());
    if trainer.is_empty() || trainer.len() > TEXT_MAX || !printable {
        return Err(SpecError::Trainer { got: trainer.chars().take(64).collect() });
    }
    match &settings.job_dir {
        Some(url) if !is_url(url) => Err(SpecError::JobDir { got: url.chars().take(TEXT_MAX).collect() }),
        _ => Ok(()),
    }
}

/// `scheme://something`, without blanks: which schemes exist is storage's own business.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let mut letters = scheme.bytes();
    let scheme_starts_well = letters.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let scheme_goes_on_well = letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let rest_is_there =
        !rest.is_empty() && !rest.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    text.len() <= TEXT_MAX && scheme_starts_well && scheme_goes_on_well && rest_is_there
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), SpecError> {
    if labels.len() > LABELS_MAX {
        return Err(SpecError::LabelCount { got: labels.len() });
    }
    for (key, value) in labels {
        let starts_well = key.chars().next().is_some_and(|first| first.is_alphabetic() && !first.is_uppercase());
        if !starts_well || !is_label_text(key) {
            return Err(SpecError::LabelKey { got: key.clone() });
        }
        if !is_label_text(value) {
            return Err(SpecError::LabelValue { key: key.clone(), got: value.clone() });
        }
    }
    Ok(())
}

/// Lower-case or caseless letters, digits, underscore and dash; at most 63 characters.
fn is_label_text(text: &str) -> bool {
    let legal = |letter: char| {
        (letter.is_alphabetic() && !letter.is_uppercase()) || letter.is_ascii_digit() || letter == '_' || letter == '-'
    };
    text.chars().count() <= LABEL_LENGTH_MAX && text.chars().all(legal)
}

fn check_arguments(arguments: &[Vec<u8>]) -> Result<(), SpecError> {
    if arguments.len() > ARGUMENTS_MAX {
        return Err(SpecError::ArgumentCount { got: arguments.len() });
    }
    let bytes: usize = arguments.iter().map(Vec::len).sum();
    if bytes > ARGUMENTS_BYTES_MAX {
        return Err(SpecError::ArgumentBytes { got: bytes });
    }
    Ok(())
}

#[cfg(test)]
#[path = "job_test.rs"]
mod tests;
