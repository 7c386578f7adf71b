//! `--decode`: answers lines from standard input, as the old program did.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use super::flags::Flags;
use crate::answer::{Answerer, Place};
use crate::commands::fail;
use crate::data::files::join;

/// One line of output for each line of input; warnings go to standard error.
pub fn run(flags: &Flags, job_dir: Option<&str>) -> ExitCode {
    let Some(url) = flags.text("train_dir").or_else(|| job_dir.map(|folder| join(folder, "train"))) else {
        fail(&"--train_dir is missing", Some("--decode answers from the checkpoints in --train_dir"));
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started at the start of a process");
    let place = Place { url, at: None, data_dir: flags.text("data_dir") };
    let mut answerer = match Answerer::open(runtime.handle().clone(), place) {
        Ok(answerer) => answerer,
        Err(error) => return fail(&error, error.hint().as_deref()),
    };
    let prompt = std::io::stdin().is_terminal();
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        tell(&mut answerer);
        if prompt {
            print!("> ");
            let _ = std::io::stdout().flush();
        }
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => return ExitCode::SUCCESS,
            Ok(_) => {}
            Err(error) => return fail(&format!("read standard input: {error}"), None),
        }
        let text = answerer.answer(line.strip_suffix(b"\n").unwrap_or(&line));
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            return ExitCode::SUCCESS;
        }
    }
}

fn tell(answerer: &mut Answerer) {
    for note in answerer.take_notes() {
        eprintln!("{note}");
    }
}
