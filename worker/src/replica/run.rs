//! The life of a replica process: orders from the agent, rendezvous, training, the last word.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coord_common::convert::spec_from_wire;
use coord_io::shutdown::Shutdown;
use coord_proto::v1::replica_order::Message as OrderBody;
use coord_proto::v1::{ReplicaMeet, ReplicaOrder, ReplicaStart};
use tokio::runtime::Runtime;

use super::pipe;
use super::reporter::Reporter;
use crate::collective::tcp::{Listener, Meeting};
use crate::collective::{AbortHandle, Collective, LocalCollective, TcpCollective};
use crate::translate::ending::Outcome;
use crate::translate::error::TrainError;
use crate::translate::flags::Flags;
use crate::translate::observer::Observer;
use crate::translate::recipe::train;
use crate::translate::settings::Settings;
use crate::translate::setup::Context;

/// A peer that does not come to the rendezvous within this time is lost.
const MEETING_TIMEOUT: Duration = Duration::from_secs(120);
/// After the agent is gone, or the collective was aborted, the process ends within this time.
const LAST_MOMENTS: Duration = Duration::from_millis(500);

/// How often a replica lets hear of itself.
const PULSE: Duration = Duration::from_secs(1);

/// Exit statuses by cause; the agent reads the cause itself, people read these.
const EXIT_FAILED: u8 = 1;
pub const EXIT_PEER_LOST: u8 = 75;
pub const EXIT_STOPPED: u8 = 143;

/// Handles shared with the threads that may end this process.
struct Control {
    reporter: Arc<Reporter>,
    recorded: Arc<AtomicU64>,
    abort: Mutex<Option<AbortHandle>>,
    /// The run has its result; a signal that comes now does not change it.
    ended: AtomicBool,
}

impl Control {
    fn abort(&self) {
        if let Some(abort) = self.abort.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            abort.abort();
        }
    }
}

/// `coord-worker train`: standard input is the socket to the agent.
pub fn run() -> ExitCode {
    match connect() {
        Ok((socket, runtime)) => converse(socket, &runtime),
        Err(error) => {
            eprintln!("error: `coord-worker train` is started by an agent, not by hand: {error}");
            ExitCode::from(2)
        }
    }
}

fn connect() -> io::Result<(UnixStream, Runtime)> {
    let descriptor: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let socket = UnixStream::from(descriptor);
    socket.peer_addr()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    Ok((socket, runtime))
}

fn converse(mut socket: UnixStream, runtime: &Runtime) -> ExitCode {
    let start = match pipe::read::<ReplicaOrder>(&mut socket) {
        Ok(Some(ReplicaOrder { message: Some(OrderBody::Start(start)) })) => start,
        Ok(_) => return ExitCode::from(EXIT_STOPPED),
        Err(error) => {
            eprintln!("error: read orders: {error}");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let writer = match socket.try_clone() {
        Ok(writer) => writer,
        Err(error) => {
            eprintln!("error: clone the agent's socket: {error}");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let control = Arc::new(Control {
        reporter: Arc::new(Reporter::new(writer)),
        recorded: Arc::default(),
        abort: Mutex::new(None),
        ended: AtomicBool::new(false),
    });
    let (meet_sender, meet) = channel();
    {
        let control = control.clone();
        std::thread::spawn(move || obey(socket, &meet_sender, &control));
    }
    watch_signals(runtime, &control);
    {
        let reporter = control.reporter.clone();
        // A thread of its own: computing threads and the runtime may be busy for as long as they like.
        std::thread::spawn(move || {
            while reporter.pulse() {
                std::thread::sleep(PULSE)
            }
        });
    }
    let result = work(&start, runtime, &meet, &control);
    control.ended.store(true, Ordering::SeqCst);
    last_word(result, &control.reporter)
}

/// Reads orders until the agent is gone, then ends the process.
fn obey(mut socket: UnixStream, meet: &Sender<ReplicaMeet>, control: &Control) {
    while let Ok(Some(order)) = pipe::read::<ReplicaOrder>(&mut socket) {
        match order.message {
            Some(OrderBody::Meet(order)) => {
                // Nobody waits for a second one: the first stands.
                let _ = meet.send(order);
            }
            Some(OrderBody::Recorded(recorded)) => {
                control.recorded.fetch_max(recorded.step, Ordering::SeqCst);
            }
            Some(OrderBody::Start(_)) | None => {}
        }
    }
    control.abort();
    std::thread::sleep(LAST_MOMENTS);
    std::process::exit(EXIT_STOPPED.into());
}

/// SIGTERM: finish the step, save, end. Before the first step there is nothing to finish.
fn watch_signals(runtime: &Runtime, control: &Arc<Control>) {
    let control = control.clone();
    runtime.spawn(async move {
        let Ok(mut shutdown) = Shutdown::install() else {
            return;
        };
        shutdown.requested().await;
        control.reporter.request_stop();
        if !control.reporter.has_started() && !control.ended.load(Ordering::SeqCst) {
            control.reporter.finished("stopped", "stopped before the first step");
            std::process::exit(EXIT_STOPPED.into());
        }
    });
}

fn work(
    start: &ReplicaStart,
    runtime: &Runtime,
    meet: &Receiver<ReplicaMeet>,
    control: &Control,
) -> Result<Outcome, TrainError> {
    let bad =
        |what: String| TrainError::Settings { what, hint: "submit the job with this version of coord".to_owned() };
    let launch = start.launch.as_ref().ok_or_else(|| bad("the launch order is empty".to_owned()))?;
    let key = launch.key.as_ref().ok_or_else(|| bad("the launch order has no key".to_owned()))?;
    let spec = spec_from_wire(launch.spec.as_ref().ok_or_else(|| bad("the launch order has no spec".to_owned()))?)
        .map_err(|error| bad(error.to_string()))?;
    let flags = Flags::parse(&spec.args)?;
    let job_dir = Some(launch.job_dir.as_str()).filter(|url| !url.is_empty());
    let settings = Settings::new(&flags, job_dir)?;

    let listener = Listener::bind(&start.host)?;
    let port = listener
        .port()
        .map_err(|source| crate::collective::CollectiveError::Listen { address: start.host.clone(), source })?;
    control.reporter.listening(format!("{}:{port}", start.host));
    control.reporter.stage("waiting for all replicas to be ready");
    // The sender lives until this process ends.
    let meeting = meet.recv().map_err(|_| TrainError::Collective(crate::collective::CollectiveError::Aborted))?;
    let mut collective: Box<dyn Collective> = if launch.world_size == 1 {
        Box::new(LocalCollective::new())
    } else {
        control.reporter.stage("meeting the other replicas");
        let meeting = Meeting {
            job: key.job.clone(),
            generation: key.generation,
            secret: launch.secret.clone(),
            rank: key.rank,
            endpoints: meeting.endpoints,
            timeout: MEETING_TIMEOUT,
        };
        Box::new(TcpCollective::connect(listener, &meeting)?)
    };
    *control.abort.lock().unwrap_or_else(PoisonError::into_inner) = Some(collective.abort_handle());

    let context = Context {
        job: key.job.clone(),
        run: launch.run.clone(),
        generation: key.generation,
        micro_batches: spec.micro_batches,
        threads: start.threads.max(1) as usize,
        fresh: spec.fresh,
        numeric_class: start.numeric_class.clone(),
        recorded: (!start.local).then(|| control.recorded.clone()),
    };
    let observer: Arc<dyn Observer> = control.reporter.clone();
    train(&settings, &context, runtime.handle(), collective.as_mut(), &observer)
}

/// Says how it ended, to people and to the agent.
fn last_word(result: Result<Outcome, TrainError>, reporter: &Reporter) -> ExitCode {
    match result {
        Ok(Outcome::Done { step, .. }) => {
            reporter.finished("done", &format!("done at step {step}"));
            ExitCode::SUCCESS
        }
        Ok(Outcome::Stopped { step }) => {
            reporter.finished("stopped", &format!("stopped after step {step}"));
            ExitCode::from(EXIT_STOPPED)
        }
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            reporter.finished(error.cause(), &error.to_string());
            ExitCode::from(if error.cause() == "peer_lost" { EXIT_PEER_LOST } else { EXIT_FAILED })
        }
    }
}
