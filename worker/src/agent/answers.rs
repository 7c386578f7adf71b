//! Answering processes: one for each job (and step) that people talk to, ended when nobody does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use coord_proto::v1::{Answer, Ask};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// A process that nobody asked anything for this long is ended.
const IDLE: Duration = Duration::from_secs(120);
/// A large model is read from a far store and verified first, on a machine that trains. Less than the leader waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(240);
const QUEUE: usize = 64;

type Key = (String, Option<u64>);
type Question = (Ask, tokio::sync::oneshot::Sender<Answer>);

#[derive(Debug)]
pub struct Answers {
    program: PathBuf,
    processes: BTreeMap<Key, mpsc::Sender<Question>>,
}

#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(default)]
    step: u64,
    #[serde(default)]
    text: String,
    #[serde(default)]
    notes: Vec<String>,
    error: Option<String>,
    hint: Option<String>,
}

impl Answers {
    pub fn new(program: PathBuf) -> Self {
        Self { program, processes: BTreeMap::new() }
    }

    /// The answer comes through the receiver; a dropped sender means that the process went away in between.
    pub fn ask(&mut self, ask: Ask) -> tokio::sync::oneshot::Receiver<Answer> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let key = (ask.train_url.clone(), ask.at_step);
        self.processes.retain(|_, process| !process.is_closed());
        let program = self.program.clone();
        let process = self.processes.entry(key.clone()).or_insert_with(|| {
            let (questions, inbox) = mpsc::channel(QUEUE);
            tokio::spawn(serve(program, key, inbox));
            questions
        });
        // A full queue drops the question: the asker sees that and says so.
        let _ = process.try_send((ask, sender));
        receiver
    }
}

async fn serve(program: PathBuf, (url, at): Key, mut inbox: mpsc::Receiver<Question>) {
    let mut process = None;
    while let Ok(Some((ask, reply))) = tokio::time::timeout(IDLE, inbox.recv()).await {
        let request = ask.request;
        let said = match converse(&program, &url, at, &mut process, &ask).await {
            Ok(said) => said,
            Err(error) => {
                // The next question starts a new process.
                process = None;
                Said { error: Some(error.to_string()), ..Said::default() }
            }
        };
        let error = match (said.error, said.hint) {
            (Some(error), Some(hint)) => format!("{error} ({hint})"),
            (error, _) => error.unwrap_or_default(),
        };
        // The asker may have gone.
        let _ = reply.send(Answer { request, step: said.step, text: said.text, error, notes: said.notes });
    }
}

struct Process {
    /// Ended when dropped.
    _child: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    step: u64,
}

async fn converse(
    program: &PathBuf,
    url: &str,
    at: Option<u64>,
    process: &mut Option<Process>,
    ask: &Ask,
) -> std::io::Result<Said> {
    let mut notes = Vec::new();
    if process.is_none() {
        let mut command = Command::new(program);
        command.args(["answer", url]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        if let Some(step) = at {
            command.args(["--at", &step.to_string()]);
        }
        let mut child = command.spawn()?;
        let gone = || std::io::Error::other("the answering process has no pipes");
        let questions = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        let mut fresh = Process { _child: child, questions, answers: BufReader::new(stdout).lines(), step: 0 };
        let greeting = hear(&mut fresh.answers).await?;
        if greeting.error.is_some() {
            return Ok(greeting);
        }
        fresh.step = greeting.step;
        notes = greeting.notes;
        *process = Some(fresh);
    }
    let Some(process) = process.as_mut() else {
        return Err(std::io::Error::other("the answering process is gone"));
    };
    // A probe is a blank prompt: the process moves on to the newest checkpoint and says nothing.
    let prompt = if ask.probe { "" } else { ask.prompt.as_str() };
    let line = format!("{}\n", json!({ "prompt": prompt }));
    process.questions.write_all(line.as_bytes()).await?;
    let mut said = hear(&mut process.answers).await?;
    process.step = said.step;
    notes.append(&mut said.notes);
    said.notes = notes;
    Ok(said)
}

async fn hear(answers: &mut Lines<BufReader<ChildStdout>>) -> std::io::Result<Said> {
    let line = tokio::time::timeout(ANSWER_TIMEOUT, answers.next_line())
        .await
        .map_err(|_| std::io::Error::other(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())))??
        .ok_or_else(|| std::io::Error::other("the answering process ended"))?;
    serde_json::from_str(&line).map_err(std::io::Error::other)
}
