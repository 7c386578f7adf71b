//! A `coord-worker answer` process on this machine: one JSON line in, one JSON line out.

use std::process::Stdio;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::chat::Answer;
use super::exit::Problem;
use super::worker_binary;

/// The process; it ends with this value.
pub struct Answerer {
    child: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

#[derive(Serialize)]
struct Question<'a> {
    prompt: &'a str,
}

/// What the process says: ready, an answer, or an error.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Said {
    Error {
        error: String,
        hint: Option<String>,
    },
    Answer {
        step: u64,
        text: String,
        #[serde(default)]
        notes: Vec<String>,
    },
    Ready {
        ready: bool,
        step: u64,
        #[serde(default)]
        notes: Vec<String>,
    },
}

impl Answerer {
    /// Starts the process and waits until it has loaded a checkpoint: the greeting tells which.
    pub async fn start(url: &str, at: Option<u64>) -> Result<(Self, Answer), Problem> {
        let mut command = Command::new(worker_binary::find()?);
        command.args(["answer", url]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        if let Some(step) = at {
            command.args(["--at", &step.to_string()]);
        }
        let mut child = command.spawn()?;
        let questions = child.stdin.take().expect("standard input was asked to be a pipe");
        let stdout = child.stdout.take().expect("standard output was asked to be a pipe");
        let mut answerer = Self { child, questions, answers: BufReader::new(stdout).lines() };
        let greeting = answerer.hear().await.map_err(|problem| problem.context("cannot chat"))?;
        Ok((answerer, greeting))
    }

    pub async fn ask(&mut self, prompt: &str) -> Result<Answer, Problem> {
        let mut question = serde_json::to_vec(&Question { prompt }).expect("a string makes valid JSON");
        question.push(b'\n');
        let sent = async {
            self.questions.write_all(&question).await?;
            self.questions.flush().await
        };
        if sent.await.is_err() {
            return Err(self.gone().await);
        }
        self.hear().await
    }

    async fn hear(&mut self) -> Result<Answer, Problem> {
        match self.answers.next_line().await? {
            Some(line) => understand(&line),
            None => Err(self.gone().await),
        }
    }

    async fn gone(&mut self) -> Problem {
        match self.child.wait().await {
            Ok(status) => Problem::failed(format!("the answering process ended ({status})")),
            Err(error) => error.into(),
        }
    }
}

fn understand(line: &str) -> Result<Answer, Problem> {
    match serde_json::from_str(line) {
        Ok(Said::Error { error, hint }) => {
            let problem = Problem::failed(error);
            Err(match hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            })
        }
        Ok(Said::Answer { step, text, notes }) => Ok(Answer { step, text, notes }),
        Ok(Said::Ready { ready: true, step, notes }) => Ok(Answer { step, text: String::new(), notes }),
        Ok(Said::Ready { ready: false, .. }) | Err(_) => {
            let shown: String = line.chars().take(200).collect();
            Err(Problem::failed(format!("the answering process said what cannot be understood: {shown}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_says_that_it_is_ready_answers_or_explains_why_not() {
        let ready = understand(r#"{"ready": true, "step": 1200, "notes": ["step 1400 was rejected: cut off"]}"#);
        let greeting = ready.expect("a greeting");
        assert_eq!((greeting.step, greeting.notes.len()), (1200, 1));
        let answer = understand(r#"{"step": 1200, "text": "i like it", "notes": []}"#).expect("an answer");
        assert_eq!(answer.text, "i like it");
        let refused = understand(r#"{"error": "no checkpoint", "hint": "train first"}"#).expect_err("an error");
        assert_eq!(refused.render(), "error: no checkpoint\nhint: train first\n");
        assert!(understand("Segmentation fault").is_err());
    }
}
