//! `coord-worker` as a user starts it: real processes in folders of their own, each with a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::cluster::binary;

/// Longer than any healthy run of these tests by far; a run that hangs fails with what it said.
const DEADLINE: Duration = Duration::from_secs(60);

/// A finished process.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Standard output of a process that has to end well.
    #[track_caller]
    pub fn good(&self) -> String {
        assert_eq!(self.code(), Some(0), "{}\n{}", self.out, self.err);
        self.out.clone()
    }

    /// Standard error of a process that has to end with `code`.
    #[track_caller]
    pub fn bad(&self, code: i32) -> &str {
        assert_eq!(self.code(), Some(code), "{}\n{}", self.out, self.err);
        &self.err
    }
}

/// A process that is still going on.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    /// What was read so far.
    seen: Vec<String>,
    err: JoinHandle<String>,
    begun: Instant,
}

impl Running {
    fn left(&self) -> Duration {
        DEADLINE.saturating_sub(self.begun.elapsed())
    }

    /// Reads standard output up to the first line that holds `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(self.left()) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.kill_all();
                    panic!("no line with {text:?} in time; the output was\n{}", self.seen.join("\n"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("no line with {text:?}; the output was\n{}", self.seen.join("\n"))
                }
            }
        }
    }

    /// Lets time pass, for a moment that no line announces.
    pub fn run_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.seen.push(line);
        }
    }

    fn pid(&self) -> Pid {
        let pid = i32::try_from(self.child.id()).expect("process ids are small");
        Pid::from_raw(pid).expect("a process id is not 0")
    }

    /// SIGKILL to every process of the run at once: replicas have process groups of their own.
    fn kill_all(&mut self) {
        let parent = self.pid();
        // Stopped first, so that it starts no more children between the look and the kill.
        let _ = kill_process(parent, Signal::STOP);
        for child in children_of(parent) {
            let _ = kill_process_group(child, Signal::KILL);
        }
        let _ = kill_process_group(parent, Signal::KILL);
    }

    pub fn kill(mut self) -> Ended {
        self.kill_all();
        self.wait()
    }

    /// SIGKILL to one child: replicas are started in the order of their ranks.
    pub fn kill_child(&self, index: usize) {
        let mut children = children_of(self.pid());
        children.sort_by_key(|pid| pid.as_raw_nonzero());
        kill_process_group(children[index], Signal::KILL).expect("the child is there");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the process is there");
    }

    #[track_caller]
    pub fn wait(mut self) -> Ended {
        loop {
            match self.lines.recv_timeout(self.left()) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.kill_all();
                    panic!("not at an end in time; the output was\n{}", self.seen.join("\n"));
                }
            }
        }
        let status = self.child.wait().expect("a child can be waited for");
        let out = self.seen.iter().fold(String::new(), |out, line| out + line + "\n");
        let err = self.err.join().expect("reading does not panic");
        Ended { status, out, err, took: self.begun.elapsed() }
    }
}

/// Direct children of a process, by /proc.
fn children_of(parent: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    processes
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in parentheses may hold anything; the parent is the second field after it.
            let ppid: i32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            if ppid == parent.as_raw_nonzero().get() { Pid::from_raw(pid) } else { None }
        })
        .collect()
}

/// Starts `coord-worker ARGS` in a folder.
pub fn start(folder: &Path, args: &[String]) -> Running {
    start_with(folder, &[], args, b"")
}

/// Runs `coord-worker ARGS` in a folder to its end.
#[track_caller]
pub fn run(folder: &Path, args: &[String]) -> Ended {
    start(folder, args).wait()
}

/// Runs `coord-worker ARGS` with `input` as standard input.
#[track_caller]
pub fn run_with(folder: &Path, args: &[String], input: &[u8]) -> Ended {
    start_with(folder, &[], args, input).wait()
}

/// `limits` are options of prlimit(1), which hold for the process and its children.
fn start_with(folder: &Path, limits: &[String], args: &[String], input: &[u8]) -> Running {
    let begun = Instant::now();
    let mut child = Command::new("prlimit")
        .args(limits)
        .arg("--")
        .arg(binary("coord-worker"))
        .args(args)
        .current_dir(folder)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("coord-worker starts");
    let mut stdin = child.stdin.take().expect("input is piped");
    let out = child.stdout.take().expect("output is piped");
    let mut err = child.stderr.take().expect("errors are piped");
    let input = input.to_vec();
    // A process that refuses to start reads nothing.
    std::thread::spawn(move || drop(stdin.write_all(&input)));
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let err = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = err.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    Running { child, lines, seen: Vec::new(), err, begun }
}

/// A folder with training data of its own, and the flags of a model so small that a step takes a millisecond.
pub struct Place {
    folder: TempDir,
    /// Program flags of every training in this place.
    pub flags: Vec<String>,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Place {
    /// Names `train.a train.b test.a test.b`; the files are the test's to write.
    pub fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let flags = words(
            "--from_train_data=train.a --to_train_data=train.b --from_dev_data=test.a --to_dev_data=test.b --size=16 \
             --num_layers=1 --from_vocab_size=200 --to_vocab_size=200 --num_samples=32 --batch_size=8 \
             --steps_per_checkpoint=20 --eval_pairs=8",
        );
        Self { folder, flags }
    }

    /// With the pairs of the dialogues that come with the program.
    pub fn new() -> Self {
        let place = Self::empty();
        let lines = concat!(env!("CARGO_MANIFEST_DIR"), "/../worker/assets/self-dialogue/movie_lines.txt");
        run(place.path(), &["dialogs".to_owned(), lines.to_owned(), ".".to_owned()]).good();
        place
    }

    /// With the first pairs only, and the development pairs cut to `dev`.
    pub fn with_pairs(train: usize, dev: usize) -> Self {
        let place = Self::new();
        for (name, lines) in [("train.a", train), ("train.b", train), ("test.a", dev), ("test.b", dev)] {
            let text = place.read(name);
            place.write(name, text.split_inclusive('\n').take(lines).collect::<String>());
        }
        place
    }

    /// Adds program flags, or changes them: the last one counts.
    #[must_use]
    pub fn flags(mut self, text: &str) -> Self {
        self.flags.extend(words(text));
        self
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("read {name}: {error}"))
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), contents).unwrap_or_else(|error| panic!("write {name}: {error}"));
    }

    /// Names in a folder, sorted; none if it is not there.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.file(folder)) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// `local LOCAL -- FLAGS PROGRAM`
    pub fn training(&self, local: &str, program: &str) -> Vec<String> {
        let mut args = vec!["local".to_owned()];
        args.extend(words(local));
        args.push("--".to_owned());
        args.extend(self.flags.iter().cloned());
        args.extend(words(program));
        args
    }

    #[track_caller]
    pub fn train(&self, local: &str, program: &str) -> Ended {
        run(self.path(), &self.training(local, program))
    }

    pub fn start(&self, local: &str, program: &str) -> Running {
        start(self.path(), &self.training(local, program))
    }

    /// Like [`Place::train`], under a limit in the form of prlimit(1).
    #[track_caller]
    pub fn train_within(&self, limit: &str, local: &str, program: &str) -> Ended {
        start_with(self.path(), &words(limit), &self.training(local, program), b"").wait()
    }

    /// Any other sub-command.
    #[track_caller]
    pub fn worker(&self, args: &str) -> Ended {
        run(self.path(), &words(args))
    }

    /// `--decode` from a train dir.
    #[track_caller]
    pub fn decode(&self, train_dir: &str, input: &[u8]) -> Ended {
        run_with(self.path(), &words(&format!("local -- --decode --train_dir={train_dir}")), input)
    }

    /// Digest of the newest training state.
    #[track_caller]
    pub fn digest(&self, folder: &str) -> String {
        self.worker(&format!("checkpoints digest {folder} --output quiet")).good().trim().to_owned()
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}
