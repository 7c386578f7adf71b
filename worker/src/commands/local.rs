//! `coord-worker local`: all replicas of a job on this machine, without a coordinator.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use coord_common::convert::spec_to_wire;
use coord_common::ids::JobId;
use coord_common::job::{JobSettings, JobSpec};
use coord_common::rank::{Rank, replica_name};
use coord_io::shutdown::{Shutdown, Signal as Caught};
use coord_io::storage::{Storage, is_url};
use coord_proto::v1::replica_message::Message as Word;
use coord_proto::v1::replica_order::Message as OrderBody;
use coord_proto::v1::{Launch, ReplicaKey, ReplicaMeet, ReplicaOrder, ReplicaStart};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::fail;
use crate::launch::{Exited, Launched, ReplicaEvent, Stream, signal_group, spawn};
use crate::numeric_class;
use crate::replica::{EXIT_PEER_LOST, EXIT_STOPPED};
use crate::translate::flags::Flags;
use crate::translate::settings::Settings;

/// Between SIGTERM and SIGKILL, when a replica has failed or the user interrupts.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub struct LocalFlags {
    /// Built-in trainer
    #[arg(long, default_value = "translate")]
    trainer: String,
    /// Replicas, each a process of its own
    #[arg(long, default_value_t = 1)]
    workers: u32,
    /// Fixed parts of each global batch
    #[arg(long, default_value_t = 8)]
    micro_batches: u32,
    /// Folder of checkpoints and results: a path or URL; without it, ./coord-run
    #[arg(long)]
    job_dir: Option<String>,
    /// Threads of each replica; without it, an equal share of the machine
    #[arg(long)]
    cpus: Option<u32>,
    /// Start anew even where another run's checkpoints lie
    #[arg(long)]
    fresh: bool,
    /// Program flags
    #[arg(last = true)]
    arguments: Vec<OsString>,
}

pub fn run(flags: LocalFlags) -> ExitCode {
    coord_io::telemetry::init("warn");
    if let Err(error) = coord_common::job::check_trainer(&flags.trainer) {
        fail(&error, None);
        return ExitCode::from(2);
    }
    if flags.arguments.iter().any(|argument| argument == "--help") {
        print!("program flags of {}:\n{}", flags.trainer, Flags::help());
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<&[u8]> = flags.arguments.iter().map(|argument| argument.as_os_str().as_bytes()).collect();
    let program = match Flags::parse(&arguments) {
        Ok(program) => program,
        Err(error) => {
            fail(&error, Some(&error.hint()));
            return ExitCode::from(2);
        }
    };
    if program.switch("self_test") {
        return crate::translate::self_test::run();
    }
    let job_dir = match job_dir_of(&flags, &program).map(absolute).transpose() {
        Ok(job_dir) => job_dir,
        Err(code) => return code,
    };
    if program.switch("decode") {
        return crate::translate::decode::run(&program, job_dir.as_deref());
    }
    // Checked here too, so that a mistake costs no processes.
    if let Err(error) = Settings::new(&program, job_dir.as_deref()) {
        fail(&error, error.hint().as_deref());
        return ExitCode::from(2);
    }
    if flags.job_dir.is_none()
        && let Some(job_dir) = &job_dir
    {
        eprintln!("the job directory is {job_dir}; `--job-dir` names another one");
    }
    let spec = match spec(&flags) {
        Ok(spec) => spec,
        Err(code) => return code,
    };
    super::runtime().block_on(supervise(spec, job_dir.unwrap_or_default(), flags.cpus))
}

/// Where a run goes that names no place of its own.
const JOB_DIR_DEFAULT: &str = "./coord-run";

/// Nothing if the program flags name both folders, as those of the old program do.
fn job_dir_of<'a>(flags: &'a LocalFlags, program: &Flags) -> Option<&'a str> {
    let named_by_the_program = ["train_dir", "data_dir"].iter().all(|flag| program.text(flag).is_some());
    flags.job_dir.as_deref().or((!named_by_the_program).then_some(JOB_DIR_DEFAULT))
}

/// A plain path becomes a URL here, because replicas may run elsewhere in the file system.
fn absolute(folder: &str) -> Result<String, ExitCode> {
    let opened = Storage::open(folder).map_err(|error| fail(&error, error.hint().as_deref()))?;
    Ok(if is_url(folder) { folder.to_owned() } else { opened.url().to_owned() })
}

fn spec(flags: &LocalFlags) -> Result<JobSpec, ExitCode> {
    // A name of its own: `--fresh` begins anew wherever another job's checkpoints lie, those of an earlier call included.
    let now = jiff::Timestamp::now().strftime("%Y%m%d_%H%M%S").to_string();
    let job = JobId::parse(&format!("local_{now}_{}", std::process::id())).expect("letters, digits and underscores");
    let mut settings = JobSettings::new(job, &flags.trainer);
    settings.workers = flags.workers..=flags.workers;
    settings.micro_batches = flags.micro_batches;
    settings.fresh = flags.fresh;
    settings.args = flags.arguments.iter().map(|argument| OsStr::as_bytes(argument).to_vec()).collect();
    JobSpec::new(settings).map_err(|error| {
        use coord_common::error::Coded;
        fail(&error, error.hint().as_deref());
        ExitCode::from(2)
    })
}

/// What comes of one replica.
enum Heard {
    Event(u32, ReplicaEvent),
}

/// Starts all replicas, lets them meet, passes their output on; the master's exit status is the answer.
async fn supervise(spec: JobSpec, job_dir: String, cpus: Option<u32>) -> ExitCode {
    let world_size = *spec.workers.start();
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return fail(&format!("find this program: {error}"), None),
    };
    let Ok(mut shutdown) = Shutdown::install() else {
        return fail(&"install signal handlers", None);
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let threads = cpus.unwrap_or((cores / world_size).max(1));
    let (heard_sender, mut heard) = mpsc::channel(1024);
    let mut replicas = Vec::new();
    let order = start_order(&spec, &job_dir, threads);
    for rank in 0..world_size {
        match begin(&program, rank, order.clone(), heard_sender.clone()).await {
            Ok(replica) => replicas.push(replica),
            Err(error) => return fail(&format!("start {}: {error}", replica_name(Rank(rank))), None),
        }
    }
    drop(heard_sender);
    let mut endpoints: Vec<Option<String>> = vec![None; world_size as usize];
    let mut ended: Vec<Option<Exited>> = vec![None; world_size as usize];
    let mut first_failure = None;
    let mut kill_at = None;
    let mut interrupted = None;
    while ended.iter().any(Option::is_none) {
        let far = Instant::now() + Duration::from_secs(3600);
        tokio::select! {
            Some(Heard::Event(rank, event)) = heard.recv() => match event {
                ReplicaEvent::Message(message) => {
                    if let Some(Word::Listening(listening)) = message.message {
                        endpoints[rank as usize] = Some(listening.endpoint);
                        if let Some(endpoints) = endpoints.iter().cloned().collect::<Option<Vec<_>>>() {
                            meet(&replicas, &endpoints).await;
                        }
                    }
                }
                ReplicaEvent::Line(stream, line) => pass_on(rank, stream, &line),
                ReplicaEvent::Exited(exited) => {
                    ended[rank as usize] = Some(exited);
                    if exited.code != Some(0) && first_failure.is_none_or(|(_, first)| follows(first) && !follows(exited)) {
                        first_failure = Some((rank, exited));
                    }
                    if (rank == 0 || exited.code != Some(0)) && kill_at.is_none() {
                        // The master decides; a failed replica ends the run for all. Peers end by themselves.
                        kill_at = Some(Instant::now() + GRACE);
                        signal_all(&replicas, &ended, Signal::TERM);
                    }
                }
            },
            caught = shutdown.requested(), if interrupted.is_none() => {
                interrupted = Some(caught);
                kill_at = Some(Instant::now() + GRACE);
                eprintln!("stopping: the step is finished and saved first");
                signal_all(&replicas, &ended, Signal::TERM);
            }
            () = sleep_until(kill_at.unwrap_or(far)) => {
                signal_all(&replicas, &ended, Signal::KILL);
                kill_at = None;
            }
        }
    }
    if let Some(caught) = interrupted {
        return ExitCode::from(if caught == Caught::Interrupt { 130 } else { 143 });
    }
    if let Some((rank, exited)) =
        first_failure.filter(|_| world_size > 1 || ended[0].is_some_and(|end| end.signal.is_some()))
    {
        let how = exited.code.map_or_else(
            || format!("signal {}", exited.signal.unwrap_or_default()),
            |code| format!("exit status {code}"),
        );
        let why = if exited.out_of_memory { " because memory ran out" } else { "" };
        eprintln!("{} ended first, with {how}{why}", replica_name(Rank(rank)));
        if exited.signal.is_some() {
            eprintln!("the same command goes on from the newest checkpoint");
        }
    }
    if ended[0].is_some_and(|exited| exited.code == Some(0)) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Whether an end may be the consequence of another replica's: a lost peer, or our own SIGTERM.
fn follows(exited: Exited) -> bool {
    exited.code.is_some_and(|code| [EXIT_PEER_LOST, EXIT_STOPPED].map(i32::from).contains(&code))
}

/// The same for all ranks but for the rank.
fn start_order(spec: &JobSpec, job_dir: &str, threads: u32) -> ReplicaStart {
    ReplicaStart {
        launch: Some(Launch {
            key: Some(ReplicaKey { job: spec.job.to_string(), generation: 1, rank: 0 }),
            spec: Some(spec_to_wire(spec)),
            world_size: *spec.workers.start(),
            job_dir: job_dir.to_owned(),
            secret: uuid::Uuid::new_v4().simple().to_string(),
            run: uuid::Uuid::new_v4().simple().to_string(),
        }),
        threads,
        numeric_class: numeric_class::probe(),
        host: "127.0.0.1".to_owned(),
        local: true,
    }
}

struct Replica {
    pid: u32,
    orders: mpsc::Sender<ReplicaOrder>,
}

async fn begin(
    program: &PathBuf,
    rank: u32,
    mut start: ReplicaStart,
    heard: mpsc::Sender<Heard>,
) -> std::io::Result<Replica> {
    let Launched { pid, orders, mut events } = spawn(program, &["train".into()], &[])?;
    if let Some(key) = start.launch.as_mut().and_then(|launch| launch.key.as_mut()) {
        key.rank = rank;
    }
    // The queue is new and empty.
    let _ = orders.send(ReplicaOrder { message: Some(OrderBody::Start(start)) }).await;
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if heard.send(Heard::Event(rank, event)).await.is_err() {
                return;
            }
        }
    });
    Ok(Replica { pid, orders })
}

async fn meet(replicas: &[Replica], endpoints: &[String]) {
    for replica in replicas {
        let meet = ReplicaMeet { endpoints: endpoints.to_vec(), restore: None };
        // A replica that is gone already is reported by its own end.
        let _ = replica.orders.send(ReplicaOrder { message: Some(OrderBody::Meet(meet)) }).await;
    }
}

fn signal_all(replicas: &[Replica], ended: &[Option<Exited>], signal: Signal) {
    for (replica, _) in replicas.iter().zip(ended).filter(|(_, ended)| ended.is_none()) {
        signal_group(replica.pid, signal);
    }
}

/// The master's lines as they are; the others' with their name.
fn pass_on(rank: u32, stream: Stream, line: &[u8]) {
    let mut out = if rank == 0 { Vec::new() } else { format!("{}: ", replica_name(Rank(rank))).into_bytes() };
    out.extend_from_slice(line);
    out.push(b'\n');
    // A closed terminal does not stop the training.
    let _ = match stream {
        Stream::Error => std::io::stderr().lock().write_all(&out),
        Stream::Output | Stream::Platform => std::io::stdout().lock().write_all(&out),
    };
}
