//! F10: how long a user waits for the first step.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use coord_common::ids::Generation;
use coord_common::rank::{Rank, replica_name};

use super::report::{Case, Report};
use super::statistics::Sample;
use crate::cluster::{Cluster, Dialogues, Layout, until};

const LIMIT_SECONDS: f64 = 1.0;

/// What is trained, and how often.
pub struct Load {
    /// Nothing for the repository's own dialogues.
    data: Option<PathBuf>,
    model: &'static str,
    submits: usize,
}

impl Load {
    /// 5.9 M parameters.
    pub fn small(data: PathBuf, submits: usize) -> Self {
        Self {
            data: Some(data),
            model: "--size=256 --num_layers=2 --from_vocab_size=5000 --to_vocab_size=5000",
            submits,
        }
    }

    pub fn tiny(submits: usize) -> Self {
        Self { data: None, model: "--size=16 --num_layers=1 --from_vocab_size=200 --to_vocab_size=200", submits }
    }

    /// One step; vocabularies and ids in a folder that all jobs share.
    fn program(&self, cluster: &Cluster) -> Vec<String> {
        let data = match &self.data {
            Some(folder) => folder.canonicalize().expect("the folder of --data"),
            None => Dialogues::make(&cluster.folder().join("dialogues")).folder().into(),
        };
        let file = |flag: &str, name: &str| format!("--{flag}={}", data.join(name).display());
        let mut flags = vec![
            file("from_train_data", "train.a"),
            file("to_train_data", "train.b"),
            file("from_dev_data", "test.a"),
            file("to_dev_data", "test.b"),
            format!("--data_dir={}", cluster.folder().join("data").display()),
        ];
        let steps = "--steps=1 --steps_per_checkpoint=1 --eval_pairs=1";
        flags.extend(self.model.split(' ').chain(steps.split(' ')).map(str::to_owned));
        flags
    }
}

pub fn run(load: &Load) -> Report {
    let cluster = Cluster::start(Layout::workers(&[1]));
    let program = load.program(&cluster);
    // Makes vocabularies and ids, and is not counted.
    seconds_to_first_step(&cluster, "warm_up", &program);
    let jobs = (1..=load.submits).map(|number| format!("job_{number}"));
    let sample = Sample::new(jobs.map(|job| seconds_to_first_step(&cluster, &job, &program)).collect());
    let value = sample.quantile(0.99);
    let case = Case { name: "p99 to the end of step 1", unit: "s", value, limit: LIMIT_SECONDS, sample: Some(sample) };
    Report { figure: "F10", cases: vec![case] }
}

/// From the start of the `coord submit` process to the line that the trainer writes at the end of its first step.
fn seconds_to_first_step(cluster: &Cluster, job: &str, program: &[String]) -> f64 {
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    cluster.submit(job, &["--workers", "1"], program);
    cluster.wait(job).done();
    let log = log_of(cluster.folder(), job);
    let ended = until(&format!("the first step in {}", log.display()), || {
        let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
        first_step(&text).ok_or(text)
    });
    ended.saturating_sub(begun).as_secs_f64()
}

/// The agent's own file: its lines have milliseconds.
fn log_of(cluster: &Path, job: &str) -> PathBuf {
    let replica = replica_name(Rank::MASTER);
    cluster.join("worker-1/logs").join(job).join(replica).join(format!("{}.log", Generation(1)))
}

/// When the line of step 1 was written, since 1970.
fn first_step(log: &str) -> Option<Duration> {
    let line = log.lines().find(|line| line.contains("\tglobal step 1 "))?;
    let time: jiff::Timestamp = line.split('\t').next()?.parse().ok()?;
    Duration::try_from(time.as_duration()).ok()
}
