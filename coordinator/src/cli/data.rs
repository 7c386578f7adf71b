//! `coord data`: prepares training data.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::exit::Problem;
use super::printer::Output;
use super::worker_binary;

#[derive(Debug, Args)]
pub struct DataFlags {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    /// Make pairs of prompt and reply from film dialogues: OUT gets train.a, train.b, test.a, test.b
    Dialogs(DialogsFlags),
}

#[derive(Debug, Args)]
struct DialogsFlags {
    /// Dialogues in the five fields of movie_lines.txt: a path or URL
    #[arg(value_name = "IN")]
    input: OsString,
    /// Folder of the pairs: a path or URL
    #[arg(value_name = "OUT")]
    out: OsString,
    /// As the old converter: compare only the last digit of line numbers
    #[arg(long)]
    last_digit_pairing: bool,
    /// Fixes the split into training and test pairs
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Encoding of IN: bytes, utf-8 or windows-1252
    #[arg(long, default_value = "bytes", value_name = "NAME")]
    encoding: String,
}

pub fn run(flags: DataFlags, output: Output) -> Problem {
    let DataCommand::Dialogs(flags) = flags.command;
    worker_binary::become_worker(arguments(flags, output))
}

fn arguments(flags: DialogsFlags, output: Output) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["dialogs", "--output", output.name(), "--seed"].map(OsString::from).to_vec();
    arguments.extend([flags.seed.to_string().into(), "--encoding".into(), flags.encoding.into()]);
    if flags.last_digit_pairing {
        arguments.push("--last-digit-pairing".into());
    }
    // Whatever the names begin with, they are no flags.
    arguments.extend(["--".into(), flags.input, flags.out]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_output_and_the_names_are_passed_on() {
        let flags = DialogsFlags {
            input: "-in".into(),
            out: "out".into(),
            last_digit_pairing: true,
            seed: 7,
            encoding: "utf-8".into(),
        };
        let expected = "dialogs --output json --seed 7 --encoding utf-8 --last-digit-pairing -- -in out";
        assert_eq!(arguments(flags, Output::Json), expected.split(' ').map(OsString::from).collect::<Vec<_>>());
    }
}
