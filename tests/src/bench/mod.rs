//! Benchmarks: each figure prints a table and, as its last line, JSON. Run them from a release build on a quiet machine;
//! `--smoke` only shows that they work.

mod f10;
mod f15;
mod machine;
mod report;
mod statistics;

use std::io::Write;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use report::Report;

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Prints a figure as a table and, as its last line, as JSON")]
struct Flags {
    #[command(subcommand)]
    figure: Figure,
}

#[derive(Debug, Subcommand)]
enum Figure {
    /// From the start of `coord submit` to the end of step 1: 5.9 M parameters, idle worker, ids there, file storage
    F10 {
        /// Folder of train.a, train.b, test.a and test.b, as `coord data dialogs` writes them
        #[arg(long, required_unless_present = "smoke")]
        data: Option<PathBuf>,
        /// Jobs that are timed, one after the other
        #[arg(long, default_value_t = 100)]
        submits: usize,
        /// A tiny model on the repository's own data, three jobs
        #[arg(long)]
        smoke: bool,
    },
    /// Idle memory of a coordinator and of an agent
    F15 {
        /// Look at once instead of after a minute
        #[arg(long)]
        smoke: bool,
    },
}

pub fn main() {
    let report: Report = match Flags::parse().figure {
        Figure::F10 { smoke: true, .. } => f10::run(&f10::Load::tiny(3)),
        Figure::F10 { data, submits, smoke: false } => {
            f10::run(&f10::Load::small(data.expect("clap asks for it"), submits))
        }
        Figure::F15 { smoke } => f15::run(smoke),
    };
    // `bench f15 | head -1`: nobody reads on, and nothing went wrong.
    let _ = write!(std::io::stdout().lock(), "{report}");
}
