//! What a scenario does not show: whole lists of effects, limits, pages and views.

use coord_common::convert::phase_to_wire;
use coord_common::exit_rule::{Cause, Exit};
use coord_common::order::{Rendezvous, Stop};
use coord_common::{
    CheckpointRecord, Device, ExitReport, Fact, FactBody, Generation, Heartbeat, Incarnation, JobId, JobSettings,
    JobSpec, Millis, NumericClass, Order, Phase, Rank, Registration, ReplicaKey, RequestId, Step, StopReason, WorkerId,
};
use coordinator_core::entry::{CancelBy, PlaceJob, SubmitJob};
use coordinator_core::view::{self, JobFilter};
use coordinator_core::{Applied, ClusterState, Command, Effect, Entry, Liveness, Policy, Reply, apply, limits};

struct Bench {
    state: ClusterState,
    now: Millis,
    sequence: u64,
}

fn job(name: &str) -> JobId {
    JobId::parse(name).expect("valid")
}

fn worker() -> WorkerId {
    WorkerId::parse("a").expect("valid")
}

fn incarnation() -> Incarnation {
    Incarnation::parse("i").expect("valid")
}

fn nobody() -> Liveness {
    Liveness::new(Millis::ZERO, Policy::default())
}

impl Bench {
    fn new() -> Bench {
        let mut bench = Bench { state: ClusterState::default(), now: Millis(0), sequence: 0 };
        bench.apply(Command::RegisterWorker(Registration {
            worker: worker(),
            name: "a.example".into(),
            incarnation: incarnation(),
            slots: 8,
            device: Device::Cpu,
            numeric_class: NumericClass::new("x"),
            version: "0.1.0".into(),
            host: "a".into(),
            alive: Vec::new(),
            facts_acknowledged: 0,
        }));
        bench
    }

    fn apply(&mut self, command: Command) -> Applied {
        apply(&mut self.state, Entry { at: self.now, proposal: 0, command })
    }

    fn submit(&mut self, name: &str, workers: u32) {
        let mut settings = JobSettings::new(job(name), "translate");
        settings.workers = workers..=workers;
        settings.labels.insert("team".into(), name.chars().take(1).collect());
        let request = RequestId::parse(name).expect("valid");
        let spec = Box::new(JobSpec::new(settings).expect("valid"));
        self.apply(Command::SubmitJob(SubmitJob { request, spec, storage: "file:///s".into() }));
    }

    fn tell(&mut self, name: &str, rank: u32, body: FactBody) -> Applied {
        self.sequence += 1;
        let generation = self.state.job(&job(name)).map_or(Generation(0), |job| job.generation);
        let key = ReplicaKey { job: job(name), generation, rank: Rank(rank) };
        let fact = Fact { sequence: self.sequence, key, body };
        self.apply(Command::ReplicaFact { worker: worker(), incarnation: incarnation(), fact })
    }

    /// The next generation, up to all ranks ready.
    fn prepare(&mut self, name: &str, size: u32) {
        let generation = self.state.job(&job(name)).expect("submitted").generation.next();
        let workers = vec![worker(); size as usize];
        let place = PlaceJob { job: job(name), generation, workers, secret: "s".into() };
        assert_eq!(self.apply(Command::PlaceJob(place)).reply, Reply::Done);
        for rank in 0..size {
            self.tell(name, rank, FactBody::Ready { endpoint: format!("a:{rank}") });
        }
    }

    fn begin(&mut self, name: &str) -> Applied {
        let generation = self.state.job(&job(name)).expect("submitted").generation;
        self.apply(Command::BeginGeneration { job: job(name), generation, restore: None })
    }
}

fn exit(code: i32, cause: Cause, step: u64) -> FactBody {
    let exit = Exit { code: Some(code), signal: None, cause };
    FactBody::Exited(ExitReport { exit, last_step: Step(step), ..ExitReport::default() })
}

fn send(order: Order) -> Effect {
    Effect::Send { worker: worker(), order }
}

#[test]
fn beginning_a_generation_sends_one_rendezvous_to_each_rank_and_nothing_else() {
    let mut bench = Bench::new();
    bench.submit("j", 2);
    bench.prepare("j", 2);
    let meet = |rank| {
        let key = ReplicaKey { job: job("j"), generation: Generation(1), rank: Rank(rank) };
        send(Order::Rendezvous(Rendezvous { key, endpoints: vec!["a:0".into(), "a:1".into()], restore: None }))
    };
    let applied = bench.begin("j");
    assert_eq!(applied.reply, Reply::Done);
    assert_eq!(applied.effects, [meet(0), meet(1), Effect::JobChanged { job: job("j") }]);
}

#[test]
fn the_end_of_one_replica_acknowledges_the_fact_and_stops_the_others_and_nothing_else() {
    let mut bench = Bench::new();
    bench.submit("j", 3);
    bench.prepare("j", 3);
    bench.begin("j");
    let stop = |rank| {
        let key = ReplicaKey { job: job("j"), generation: Generation(1), rank: Rank(rank) };
        send(Order::Stop(Stop { key, reason: StopReason::GenerationEnded, grace: Millis::from_seconds(10) }))
    };
    let applied = bench.tell("j", 1, exit(7, Cause::Unsaid, 0));
    let acknowledge = Effect::Acknowledge { worker: worker(), incarnation: incarnation(), sequence: 4 };
    assert_eq!(applied.effects, [acknowledge, stop(0), stop(2), Effect::JobChanged { job: job("j") }]);
}

#[test]
fn an_ignored_fact_is_acknowledged_and_has_no_other_effect() {
    let mut bench = Bench::new();
    let applied = bench.tell("nobody", 0, exit(0, Cause::Done, 0));
    assert_eq!(applied.reply, Reply::Ignored { why: "no such job" });
    let acknowledge = Effect::Acknowledge { worker: worker(), incarnation: incarnation(), sequence: 1 };
    assert_eq!(applied.effects, [acknowledge]);
}

#[test]
fn twenty_generations_in_a_row_without_a_new_step_fail_the_job_and_one_new_step_starts_the_count_anew() {
    let mut bench = Bench::new();
    bench.submit("j", 1);
    for _ in 0..limits::IDLE_GENERATIONS_MAX - 1 {
        bench.prepare("j", 1);
        bench.begin("j");
        bench.tell("j", 0, exit(1, Cause::PeerLost, 0));
    }
    bench.prepare("j", 1);
    bench.begin("j");
    bench.tell("j", 0, exit(1, Cause::PeerLost, 5));
    for _ in 0..limits::IDLE_GENERATIONS_MAX {
        assert_eq!(bench.state.job(&job("j")).expect("there").phase, Phase::Preparing);
        bench.prepare("j", 1);
        bench.begin("j");
        bench.tell("j", 0, exit(1, Cause::PeerLost, 5));
    }
    let failed = bench.state.job(&job("j")).expect("there");
    assert_eq!(failed.phase, Phase::Failed);
    assert_eq!((failed.restarts, failed.failure.as_ref().map(|failure| failure.cause)), (0, Some("restarts")));
}

#[test]
fn the_newest_checkpoints_are_kept_and_the_newest_of_them_is_the_one_with_most_steps() {
    let mut bench = Bench::new();
    bench.submit("j", 1);
    bench.prepare("j", 1);
    for step in 1..=limits::CHECKPOINTS_KEPT as u64 + 10 {
        let record = CheckpointRecord {
            step: Step(step),
            generation: Generation(1),
            manifest_url: String::new(),
            manifest_digest: String::new(),
            state_digest: String::new(),
            at: Millis(step),
        };
        bench.tell("j", 0, FactBody::Checkpoint(record));
    }
    let job = bench.state.job(&job("j")).expect("there");
    assert_eq!(job.checkpoints.len(), limits::CHECKPOINTS_KEPT);
    assert_eq!(job.checkpoints[0].step, Step(11));
    assert_eq!(job.newest_checkpoint().map(|record| record.step), Some(Step(60)));
}

#[test]
fn the_platforms_lines_only_grow_and_are_limited() {
    let mut bench = Bench::new();
    bench.submit("j", 1);
    let mut before = view::service_lines(&bench.state, &job("j"));
    assert_eq!(before.len(), 4);
    for step in 0..limits::EVENTS_MAX as u64 {
        bench.prepare("j", 1);
        bench.tell("j", 0, exit(1, Cause::PeerLost, step + 1));
        let lines = view::service_lines(&bench.state, &job("j"));
        assert_eq!(lines[..before.len()], before[..]);
        before = lines;
    }
    assert_eq!(before.len(), 4 + limits::EVENTS_MAX + 1);
    bench.apply(Command::CancelJob { job: job("j"), by: CancelBy::User });
    let last = view::service_lines(&bench.state, &job("j")).pop().expect("lines");
    assert_eq!((last.text.as_str(), last.severity.as_str()), ("Job cancelled.", "INFO"));
    assert_eq!(last.next.map(|next| next.position), Some(before.len() as u64 + 1));
}

#[test]
fn pages_are_newest_first_and_neither_skip_nor_repeat_while_jobs_come_and_go() {
    let mut bench = Bench::new();
    for name in ["a1", "b2", "a3", "b4", "a5"] {
        bench.submit(name, 1);
    }
    let names = |page: &view::JobPage| -> Vec<String> {
        page.jobs.iter().map(|job| job.spec.as_ref().expect("a spec").job.clone()).collect()
    };
    let first = view::list(&bench.state, &nobody(), bench.state.now(), &JobFilter::default(), "", 2).expect("a page");
    assert_eq!(names(&first), ["a5", "b4"]);
    bench.submit("a6", 1);
    let rest = view::list(&bench.state, &nobody(), bench.state.now(), &JobFilter::default(), &first.next_page_token, 9)
        .expect("a page");
    assert_eq!(names(&rest), ["a3", "b2", "a1"]);
    assert_eq!(rest.next_page_token, "");
    assert_eq!(rest.jobs.iter().map(|job| job.queue_position).collect::<Vec<_>>(), [3, 2, 1]);

    let team_b = JobFilter { phases: vec![Phase::Queued], labels: [("team".into(), "b".into())].into() };
    let page = view::list(&bench.state, &nobody(), bench.state.now(), &team_b, "", 0).expect("a page");
    assert_eq!(names(&page), ["b4", "b2"]);
    let refused = view::list(&bench.state, &nobody(), bench.state.now(), &team_b, "x", 0).expect_err("no token");
    assert_eq!(refused.code, "invalid_page_token");
}

#[test]
fn a_described_job_names_the_first_failure_and_marks_the_rest_as_consequences() {
    let mut bench = Bench::new();
    bench.submit("j", 3);
    bench.prepare("j", 3);
    bench.begin("j");
    bench.now = Millis(5_000);
    bench.tell("j", 0, exit(1, Cause::PeerLost, 9));
    bench.tell("j", 2, exit(7, Cause::Unsaid, 9));
    bench.tell("j", 1, exit(1, Cause::Unsaid, 9));
    let described = view::job(&bench.state, &nobody(), bench.state.now(), &job("j")).expect("there");
    assert_eq!(described.phase, i32::from(phase_to_wire(Phase::Failed)));
    assert_eq!(described.ended_millis, 5_000);
    let failure = described.failure.expect("a failure");
    assert_eq!((failure.replica.as_str(), failure.exit_code), ("worker-replica-2", Some(7)));
    let consequences: Vec<bool> = described.replicas.iter().map(|replica| replica.consequence).collect();
    assert_eq!(consequences, [true, true, false]);
    let interruption = &described.interruptions[0];
    assert!(interruption.reason.contains("worker-replica-2"), "{}", interruption.reason);
}

#[test]
fn the_clock_of_the_state_never_goes_back() {
    let mut bench = Bench::new();
    bench.now = Millis(9_000);
    bench.submit("j", 1);
    bench.now = Millis(4_000);
    bench.apply(Command::CancelJob { job: job("j"), by: CancelBy::User });
    let cancelled = bench.state.job(&job("j")).expect("there");
    assert_eq!((bench.state.now(), cancelled.ended), (Millis(9_000), Some(Millis(9_000))));
}

#[test]
fn workers_are_shown_with_their_condition_and_free_slots() {
    let mut bench = Bench::new();
    bench.submit("j", 3);
    bench.prepare("j", 3);
    let mut seen = nobody();
    let shown = view::worker(&bench.state, &seen, bench.state.now(), &worker()).expect("there");
    assert_eq!((shown.state.as_str(), shown.slots_free, shown.replicas.len()), ("unreachable", 5, 3));
    seen.heard(&worker(), &incarnation(), Heartbeat::default(), Millis(70));
    let shown = view::worker(&bench.state, &seen, bench.state.now(), &worker()).expect("there");
    assert_eq!((shown.state.as_str(), shown.last_seen_millis), ("connected", 70));
    bench.apply(Command::DrainWorker { worker: worker(), incarnation: incarnation() });
    let shown = view::workers(&bench.state, &seen, bench.state.now());
    assert_eq!((shown[0].state.as_str(), shown[0].slots_free), ("leaving", 0));
}
