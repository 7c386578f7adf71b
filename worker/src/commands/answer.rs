//! `coord-worker answer`: prompts on standard input, answers on standard output, one JSON line each.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Answerer, Place};

#[derive(Debug, Args)]
pub struct AnswerFlags {
    /// URL or path of a job dir or a train dir
    url: String,
    /// Only this step, instead of the newest complete checkpoint
    #[arg(long, value_name = "STEP")]
    at: Option<u64>,
    /// Folder of the vocabularies, where they are no longer where the training had them
    #[arg(long, value_name = "URL")]
    data_dir: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Question {
    prompt: String,
}

pub fn run(flags: &AnswerFlags) -> ExitCode {
    let runtime = super::runtime();
    let place = Place { url: flags.url.clone(), at: flags.at, data_dir: flags.data_dir.clone() };
    let mut answerer = match Answerer::open(runtime.handle().clone(), place) {
        Ok(answerer) => answerer,
        Err(error) => {
            let line = json!({"error": error.to_string(), "hint": error.hint()});
            return if say(&line) { ExitCode::from(1) } else { ExitCode::from(2) };
        }
    };
    if !say(&json!({"ready": true, "step": answerer.step(), "notes": answerer.take_notes()})) {
        return ExitCode::SUCCESS;
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else {
            break;
        };
        let reply = match serde_json::from_str::<Question>(&line) {
            Ok(question) => {
                let text = answerer.answer(question.prompt.as_bytes());
                json!({"step": answerer.step(), "text": text, "notes": answerer.take_notes()})
            }
            Err(error) => json!({"error": format!("expected a line like {{\"prompt\": \"...\"}}: {error}")}),
        };
        if !say(&reply) {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// False when nobody listens any more.
fn say(line: &Value) -> bool {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}
