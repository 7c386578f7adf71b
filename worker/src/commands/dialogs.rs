//! `coord-worker dialogs`: film dialogues to training pairs.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Output, fail};
use crate::data::dialog_files::{DialogReport, convert_files};
use crate::data::dialogs::{DialogOptions, LineNumbers};
use crate::data::encoding::Encoding;
use crate::files::StoredFiles;

#[derive(Debug, Args)]
pub struct DialogsFlags {
    /// Dialogues in the five-field form of movie_lines.txt: a path or URL
    #[arg(value_name = "IN")]
    input: String,
    /// Folder for train.a train.b test.a test.b: a path or URL
    #[arg(value_name = "OUT")]
    out: String,
    /// As the old converter: compare only the last digit of line numbers
    #[arg(long)]
    last_digit_pairing: bool,
    /// Fixes the split into training and test pairs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Encoding of IN: bytes, utf-8 or windows-1252
    #[arg(long, default_value = "bytes")]
    encoding: String,
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub fn run(flags: &DialogsFlags) -> ExitCode {
    let encoding: Encoding = match flags.encoding.parse() {
        Ok(encoding) => encoding,
        Err(error) => return fail(&format!("--encoding: {error}"), None),
    };
    let options = DialogOptions {
        line_numbers: if flags.last_digit_pairing { LineNumbers::LastDigit } else { LineNumbers::Whole },
        encoding,
        seed: flags.seed,
    };
    let runtime = super::runtime();
    let files = StoredFiles::new(runtime.handle().clone());
    match convert_files(&files, &flags.input, &flags.out, options) {
        Ok(report) => {
            tell(&report, flags.output);
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error, error.hint().as_deref()),
    }
}

fn tell(report: &DialogReport, output: Output) {
    let DialogReport { lines, pairs, train_pairs, test_pairs, urls, .. } = report;
    if output == Output::Json {
        let value = json!({
            "lines": lines, "pairs": pairs, "train_pairs": train_pairs, "test_pairs": test_pairs, "urls": urls,
        });
        println!("{value:#}");
        return;
    }
    if output == Output::Table {
        eprintln!("{lines} lines, {pairs} pairs: {train_pairs} for training, {test_pairs} for tests");
    }
    urls.iter().for_each(|url| println!("{url}"));
}
