//! `coord local train`: the same training on this machine, without a cluster.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use coord_common::job::MICRO_BATCHES_DEFAULT;

use super::exit::Problem;
use super::worker_binary;

#[derive(Debug, Args)]
pub struct LocalFlags {
    #[command(subcommand)]
    command: LocalCommand,
}

#[derive(Debug, Subcommand)]
enum LocalCommand {
    /// Train on this machine; exits as the trainer does
    #[command(after_help = "`coord local train -- --help` lists the flags of the trainer.")]
    Train(TrainFlags),
}

#[derive(Debug, Args)]
struct TrainFlags {
    /// Built-in trainer to run
    #[arg(long, default_value = "translate", value_name = "NAME")]
    trainer: String,
    /// Replicas, each a process of its own
    #[arg(long, default_value_t = 1, value_name = "N")]
    workers: u32,
    /// Fixed parts of each global batch: the weights depend on it, and it bounds the workers
    #[arg(long, default_value_t = MICRO_BATCHES_DEFAULT, value_name = "V")]
    micro_batches: u32,
    /// Where checkpoints and results go: a directory or a URL; without it, ./coord-run
    #[arg(long, value_name = "DIR|URL")]
    job_dir: Option<OsString>,
    /// Threads of each replica; without it, an equal share of the machine
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Start anew even where checkpoints of another training lie
    #[arg(long)]
    fresh: bool,
    /// Arguments of the trainer
    #[arg(last = true, value_name = "PROGRAM_FLAGS")]
    arguments: Vec<OsString>,
}

pub fn run(flags: LocalFlags) -> Problem {
    let LocalCommand::Train(flags) = flags.command;
    worker_binary::become_worker(arguments(flags))
}

fn arguments(flags: TrainFlags) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["local", "--trainer"].map(OsString::from).to_vec();
    arguments.push(flags.trainer.into());
    arguments.extend(["--workers".into(), flags.workers.to_string().into()]);
    arguments.extend(["--micro-batches".into(), flags.micro_batches.to_string().into()]);
    if let Some(job_dir) = flags.job_dir {
        arguments.extend(["--job-dir".into(), job_dir]);
    }
    if let Some(cpus) = flags.cpus {
        arguments.extend(["--cpus".into(), cpus.to_string().into()]);
    }
    if flags.fresh {
        arguments.push("--fresh".into());
    }
    arguments.push("--".into());
    arguments.extend(flags.arguments);
    arguments
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn the_trainers_flags_follow_the_separator_to_the_byte() {
        let odd = OsString::from_vec(b"--x=\xff".to_vec());
        let flags = TrainFlags {
            trainer: "translate".into(),
            workers: 2,
            micro_batches: 8,
            job_dir: Some("./out".into()),
            cpus: None,
            fresh: true,
            arguments: vec!["--steps".into(), "".into(), odd.clone()],
        };
        let plain = "local --trainer translate --workers 2 --micro-batches 8 --job-dir ./out --fresh -- --steps";
        let mut expected: Vec<OsString> = plain.split(' ').map(OsString::from).collect();
        expected.extend([OsString::new(), odd]);
        assert_eq!(arguments(flags), expected);
    }
}
