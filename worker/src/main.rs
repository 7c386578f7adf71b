//! `coord-worker`: the agent of a host, and the sub-commands that `coord` and the agent start.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use worker::commands::{answer, check, checkpoints, dialogs, local, run};

#[derive(Debug, Parser)]
#[command(name = "coord-worker", version, about = "Runs training replicas for a coord cluster", max_term_width = 100)]
struct Flags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the agent of this host: registers with the coordinator and runs replicas
    Run(run::RunFlags),
    /// One replica; started by an agent
    #[command(hide = true)]
    Train,
    /// Say whether a job could begin with these program flags; started by `coord submit`
    #[command(hide = true)]
    Check(check::CheckFlags),
    /// Train on this machine without a cluster; started by `coord local train`
    #[command(hide = true)]
    Local(local::LocalFlags),
    /// Answer prompts from a checkpoint, one JSON line each; started by `coord chat` and by agents
    #[command(hide = true)]
    Answer(answer::AnswerFlags),
    /// List, verify and compare checkpoints; started by `coord checkpoints`
    #[command(hide = true)]
    Checkpoints(checkpoints::CheckpointsFlags),
    /// Make training pairs from film dialogues; started by `coord data dialogs`
    #[command(hide = true)]
    Dialogs(dialogs::DialogsFlags),
}

fn main() -> ExitCode {
    coord_io::crypto::install();
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) => return worker::commands::usage(&error),
    };
    match flags.command {
        Command::Run(flags) => run::run(flags),
        Command::Train => {
            coord_io::telemetry::init("warn");
            worker::replica::run()
        }
        Command::Check(flags) => check::run(&flags),
        Command::Local(flags) => local::run(flags),
        Command::Answer(flags) => answer::run(&flags),
        Command::Checkpoints(flags) => checkpoints::run(&flags),
        Command::Dialogs(flags) => dialogs::run(&flags),
    }
}
