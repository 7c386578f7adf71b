//! The tree of commands and the flags that all of them share; each command's own flags stand in its file.

use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::ServeFlags;

use super::address::{Address, AddressError};
use super::printer::Output;
use super::{
    cancel, chat, checkpoints, data, delete, demo, describe, list, local, logs, storage, submit, wait, watch, why,
};

/// A self-hosted training cluster: submit a job with one command, follow it, talk to the model while it trains.
#[derive(Debug, Parser)]
#[command(name = "coord", version, disable_help_subcommand = true, after_help = EXIT_STATUSES)]
pub struct Flags {
    #[command(flatten)]
    pub common: CommonFlags,
    #[command(subcommand)]
    pub command: Command,
}

impl Flags {
    /// `arguments` with the program's name.
    pub fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = taking_negative_numbers(Self::command());
        let found = command.try_get_matches_from_mut(arguments)?;
        Self::from_arg_matches(&found).map_err(|error| error.format(&mut command))
    }
}

/// `--steps -1` is a bad value, not an unknown flag.
fn taking_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|argument| {
            let takes_values = argument.get_action().takes_values();
            argument.allow_negative_numbers(takes_values)
        })
        .mut_subcommands(taking_negative_numbers)
}

const EXIT_STATUSES: &str = "Exit status: 0 done, 1 failed or refused, 2 usage or environment, 3 cancelled, \
    4 time limit, 5 not found or removed, 130 interrupted.";

#[derive(Debug, Clone, Args)]
pub struct CommonFlags {
    /// Coordinator addresses, HOST or HOST:PORT; any member of the cluster will do
    #[arg(long, global = true, env = "COORD_ADDRESS", default_value = "127.0.0.1:7070", value_name = "A,A,A")]
    #[arg(hide_env_values = true)]
    pub address: String,
    /// How data is written to standard output
    #[arg(long, global = true, value_enum, default_value_t)]
    pub output: Output,
}

impl CommonFlags {
    pub fn addresses(&self) -> Result<Vec<Address>, AddressError> {
        Address::parse_list(&self.address)
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a small chatbot in an embedded cluster, lose a worker on the way, and talk to the result
    Demo(demo::DemoFlags),
    /// Run a coordinator node
    Serve(ServeFlags),
    /// Submit a training job
    Submit(submit::SubmitFlags),
    /// List jobs, newest first
    List(list::ListFlags),
    /// Show everything known about a job
    Describe(describe::DescribeFlags),
    /// Ask jobs to end
    Cancel(cancel::CancelFlags),
    /// Remove finished jobs from the list; their ids stay taken
    Delete(delete::DeleteFlags),
    /// Wait until jobs have ended and exit by how they ended
    Wait(wait::WaitFlags),
    /// Follow the progress of a job
    Watch(watch::WatchFlags),
    /// Say why a job waits, or why it failed
    Why(why::WhyFlags),
    /// Print the log of a job
    Logs(logs::LogsFlags),
    /// List, verify and compare checkpoints
    Checkpoints(checkpoints::CheckpointsFlags),
    /// Talk to a model, also while it trains
    Chat(chat::ChatFlags),
    /// List the workers of the cluster
    Workers,
    /// List the coordinator nodes
    Members,
    /// Look at and copy objects in file, S3, Google and Azure storage
    Storage(storage::StorageFlags),
    /// Train on this machine, without a cluster
    Local(local::LocalFlags),
    /// Prepare training data
    Data(data::DataFlags),
}
