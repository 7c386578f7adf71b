//! `coord chat`: lines in, answers out, from a job that trains or from a checkpoint.

use std::io::{BufRead, IsTerminal};

use clap::Args;
use coord_proto::v1;
use serde_json::json;

use super::answerer::Answerer;
use super::checkpoints::is_place;
use super::client::Client;
use super::exit::{Exit, Problem};
use super::greeting::greet;
use super::names;
use super::printer::{Output, Printer};
use super::session::Session;

#[derive(Debug, Args)]
#[command(after_help = "Without a terminal, each line of standard input gives one line of standard output; a blank \
    line gives a blank one.")]
pub struct ChatFlags {
    /// A job, or the URL or path of a job directory or train directory
    #[arg(value_name = "JOB|URL")]
    place: String,
    /// Answer from the checkpoint of this step; without it, from the newest
    #[arg(long, value_name = "STEP")]
    at: Option<u64>,
}

/// An answer and the step it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub step: u64,
    pub text: String,
    pub notes: Vec<String>,
}

/// Who answers: a worker of the job's cluster, or a process on this machine.
enum Partner<'a> {
    Job { client: &'a mut Client, job: String, at: Option<u64> },
    Checkpoint(Box<Answerer>),
}

pub async fn run(flags: ChatFlags, session: &mut Session) -> Result<Exit, Problem> {
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let Session { client, printer, .. } = session;
    let (mut partner, greeting) = Partner::open(&flags, client, printer, interactive).await?;
    say_notes(printer, &greeting.notes);
    // A dialogue blocks on its own thread: standard input cannot be read without one.
    let mut lines = stdin_lines();
    let mut step = greeting.step;
    loop {
        if interactive {
            printer.prompt(&format!("[step {step}] > "));
        }
        let Some(line) = lines.recv().await else { break };
        let prompt = text_of(&line?, printer);
        if prompt.trim().is_empty() {
            if !interactive {
                print(printer, &prompt, &Answer { step, text: String::new(), notes: Vec::new() })?;
            }
            continue;
        }
        let answer = partner.ask(&prompt).await?;
        say_notes(printer, &answer.notes);
        if interactive && answer.step != step {
            printer.talk(&format!("(answered by step {})", answer.step));
        }
        if interactive && answer.text.is_empty() {
            printer.talk("(the answer is empty)");
        }
        step = answer.step;
        print(printer, &prompt, &answer)?;
    }
    if interactive {
        printer.prompt("\n");
    }
    Ok(Exit::Done)
}

impl<'a> Partner<'a> {
    /// `patient`: a job that has no checkpoint yet is waited for.
    async fn open(
        flags: &ChatFlags,
        client: &'a mut Client,
        printer: &Printer,
        patient: bool,
    ) -> Result<(Self, Answer), Problem> {
        if is_place(&flags.place) {
            let (answerer, greeting) = Answerer::start(&flags.place, flags.at).await?;
            return Ok((Self::Checkpoint(Box::new(answerer)), greeting));
        }
        let job = names::job_or_place(&flags.place)?;
        let greeting = greet(client, printer, &job, flags.at, patient)
            .await
            .map_err(|problem| names::folder_hint(problem, &flags.place))?;
        Ok((Self::Job { client, job, at: flags.at }, greeting))
    }

    async fn ask(&mut self, prompt: &str) -> Result<Answer, Problem> {
        match self {
            Self::Job { client, job, at } => ask_job(client, job, *at, prompt.to_owned()).await,
            Self::Checkpoint(answerer) => answerer.ask(prompt).await,
        }
    }
}

/// One question to a job.
pub async fn ask_job(client: &mut Client, job: &str, at: Option<u64>, prompt: String) -> Result<Answer, Problem> {
    let request = v1::AskJobRequest { job: job.to_owned(), at_step: at, prompt, probe: false };
    let answer = client.ask(request).await.map_err(|error| Problem::from(error).context("cannot chat with job"))?;
    Ok(Answer { step: answer.step, text: answer.text, notes: answer.notes })
}

/// Standard input line by line, split at LF only; the end of input ends the stream.
fn stdin_lines() -> tokio::sync::mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().split(b'\n');
        for line in lines {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn text_of(line: &[u8], printer: &Printer) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        printer.talk("warning: the line is not UTF-8; each bad byte was replaced");
    }
    text.into_owned()
}

fn print(printer: &Printer, prompt: &str, answer: &Answer) -> Result<(), Problem> {
    if printer.output() == Output::Json {
        return printer.json_line(&json!({
            "prompt": prompt,
            "step": answer.step,
            "text": answer.text,
            "notes": answer.notes,
        }));
    }
    // One line in, one line out, whatever the model says.
    printer.line(&answer.text.replace(['\n', '\r'], " "))
}

fn say_notes(printer: &Printer, notes: &[String]) {
    for note in notes {
        printer.talk(&format!("note: {note}"));
    }
}
