//! The agent's rules, one event at a time; nothing else may happen.

use std::sync::Arc;

use coord_common::checkpoint::CheckpointRecord;
use coord_common::ids::{Generation, Incarnation, JobId, WorkerId};
use coord_common::job::{JobSettings, JobSpec};
use coord_common::order::StopReason;
use coord_common::resources::{Device, NumericClass};

use super::*;

fn state() -> AgentState {
    let registration = Registration {
        worker: WorkerId::parse("w").unwrap(),
        name: "host".to_owned(),
        incarnation: Incarnation::parse("i").unwrap(),
        slots: 2,
        device: Device::Cpu,
        numeric_class: NumericClass::new("cpu-1"),
        version: "1".to_owned(),
        host: "127.0.0.1".to_owned(),
        alive: Vec::new(),
        facts_acknowledged: 0,
    };
    AgentState::new(registration, Millis::from_seconds(30))
}

fn key(generation: u64) -> ReplicaKey {
    ReplicaKey { job: JobId::parse("j").unwrap(), generation: Generation(generation), rank: Rank(0) }
}

fn launch(generation: u64) -> Launch {
    let settings = JobSettings::new(JobId::parse("j").unwrap(), "translate");
    Launch {
        key: key(generation),
        spec: Arc::new(JobSpec::new(settings).unwrap()),
        world_size: 1,
        job_dir: "file:///tmp/j".to_owned(),
        secret: "s".to_owned(),
        run: "r".to_owned(),
    }
}

fn stop(generation: u64, seconds: u64) -> Event {
    let grace = Millis::from_seconds(seconds);
    Event::Order(Order::Stop(Stop { key: key(generation), reason: StopReason::Cancelled, grace }))
}

fn ended(key: ReplicaKey, code: Option<i32>, signal: Option<i32>, tail: &str) -> Event {
    Event::Exited { key, exited: Exited { code, signal, out_of_memory: false }, tail: tail.to_owned() }
}

fn exited(generation: u64) -> Event {
    ended(key(generation), Some(0), None, "")
}

#[test]
fn a_key_is_started_at_most_once_however_often_it_is_ordered() {
    let mut agent = state();
    let order = || Event::Order(Order::Launch(launch(1)));
    assert_eq!(agent.on(order(), Millis(0)), [Effect::Start(launch(1))]);
    assert_eq!(agent.on(order(), Millis(1)), []);
    agent.on(exited(1), Millis(2));
    assert_eq!(agent.on(order(), Millis(3)), []);
}

fn registered(begun: u64) -> Event {
    Event::Registered { begun: Millis(begun) }
}

fn attach(agent: &mut AgentState) {
    assert_eq!(agent.on(Event::Connected, Millis(0)), [Effect::Register]);
    assert_eq!(agent.on(registered(1), Millis(0)), []);
}

/// The coordinator lost its state while replicas ran; then a job of the old name was submitted.
#[test]
fn under_a_cluster_that_began_again_nothing_of_before_counts() {
    let order = || Event::Order(Order::Launch(launch(1)));
    let ready = |sequence, endpoint: &str| {
        Effect::SendFact(Fact { sequence, key: key(1), body: FactBody::Ready { endpoint: endpoint.to_owned() } })
    };
    let listening = |endpoint: &str| Event::Listening { key: key(1), endpoint: endpoint.to_owned() };
    let mut agent = state();
    assert_eq!(agent.on(Event::Connected, Millis(0)), [Effect::Register]);
    assert_eq!(agent.on(registered(5), Millis(0)), []);
    assert_eq!(agent.on(order(), Millis(0)), [Effect::Start(launch(1))]);
    assert_eq!(agent.on(listening("old:1"), Millis(0)), [ready(1, "old:1")]);
    assert_eq!(agent.on(Event::Acknowledged(1), Millis(0)), []);
    assert_eq!(agent.on(Event::Disconnected, Millis(1)), []);
    // Ended, and told to nobody yet: the end of generation 2 must not be that of another job's.
    assert_eq!(agent.on(Event::Order(Order::Launch(launch(2))), Millis(1)), [Effect::Start(launch(2))]);
    assert_eq!(agent.on(exited(2), Millis(1)), []);

    assert_eq!(agent.on(Event::Connected, Millis(2)), [Effect::Register]);
    assert_eq!(agent.on(registered(6), Millis(2)), [Effect::Kill(key(1))]);
    assert_eq!(agent.on(Event::Tick, Millis(3)), [Effect::Heartbeat(Heartbeat::default())]);
    // What the old replica still says is nobody's, and a launch waits for its end.
    let progress = Progress { step: Step(7), ..Progress::default() };
    assert_eq!(agent.on(Event::Progressed { key: key(1), progress }, Millis(4)), []);
    assert_eq!(agent.on(Event::Started { key: key(1), step: Step(1) }, Millis(4)), []);
    assert_eq!(agent.on(order(), Millis(5)), []);
    let again = [Effect::Kill(key(1)), Effect::Heartbeat(Heartbeat::default())];
    assert_eq!(agent.on(Event::Tick, Millis(1_003)), again);
    assert_eq!(agent.on(ended(key(1), None, Some(SIGKILL), ""), Millis(1_004)), []);
    // Facts go on in number where the new cluster believes this agent to be.
    assert_eq!(agent.on(order(), Millis(1_005)), [Effect::Start(launch(1))]);
    assert_eq!(agent.on(listening("new:1"), Millis(1_006)), [ready(2, "new:1")]);
    assert_eq!(agent.on(Event::Order(Order::Launch(launch(2))), Millis(1_007)), [Effect::Start(launch(2))]);
    // Another leader of the same cluster changes nothing.
    assert_eq!(agent.on(Event::Connected, Millis(1_010)), [Effect::Register]);
    assert_eq!(agent.on(registered(6), Millis(1_010)), [ready(2, "new:1")]);
}

#[test]
fn facts_wait_for_a_leader_and_are_sent_again_until_acknowledged() {
    let mut agent = state();
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    let listening = Event::Listening { key: key(1), endpoint: "h:1".to_owned() };
    assert_eq!(agent.on(listening, Millis(1)), []);
    let ready = Fact { sequence: 1, key: key(1), body: FactBody::Ready { endpoint: "h:1".to_owned() } };
    for _ in 0..2 {
        assert_eq!(agent.on(Event::Connected, Millis(2)), [Effect::Register]);
        assert_eq!(agent.on(registered(1), Millis(2)), [Effect::SendFact(ready.clone())]);
        assert_eq!(agent.on(Event::Disconnected, Millis(3)), []);
    }
    assert_eq!(agent.on(Event::Acknowledged(1), Millis(4)), []);
    assert_eq!(agent.on(Event::Connected, Millis(5)), [Effect::Register]);
    assert_eq!(agent.registration().facts_acknowledged, 1);
}

#[test]
fn a_stop_terminates_once_and_kills_after_the_grace() {
    let mut agent = state();
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    assert_eq!(agent.on(stop(1, 10), Millis(0)), [Effect::Terminate(key(1))]);
    assert_eq!(agent.on(stop(1, 10), Millis(5_000)), []);
    assert_eq!(agent.on(Event::Tick, Millis(9_999)), []);
    assert_eq!(agent.on(Event::Tick, Millis(10_000)), [Effect::Kill(key(1))]);
}

/// The core counts on it: a launch that was lost on the way must not hold its slots for ever.
#[test]
fn a_stop_for_an_unknown_key_is_answered_with_an_end_once() {
    let mut agent = state();
    attach(&mut agent);
    let effects = agent.on(stop(3, 10), Millis(0));
    assert!(matches!(&effects[..], [Effect::SendFact(Fact { body: FactBody::Exited(_), .. })]), "{effects:?}");
    assert_eq!(agent.on(stop(3, 10), Millis(1)), []);
    assert_eq!(agent.on(Event::Order(Order::Launch(launch(3))), Millis(2)), []);
}

#[test]
fn a_replica_ended_by_our_signal_is_stopped_and_not_at_fault() {
    let mut agent = state();
    attach(&mut agent);
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    agent.on(stop(1, 10), Millis(0));
    let event = ended(key(1), None, Some(15), "bye");
    let effects = agent.on(event, Millis(1));
    let [Effect::SendFact(Fact { body: FactBody::Exited(report), .. })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((report.exit.cause, report.tail.as_str()), (Cause::Stopped, "bye"));
}

#[test]
fn the_last_word_of_a_replica_is_its_cause() {
    let mut agent = state();
    attach(&mut agent);
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    agent.on(Event::Finished { key: key(1), cause: Cause::Data, message: "m".to_owned() }, Millis(1));
    let effects = agent.on(ended(key(1), Some(1), None, ""), Millis(2));
    let [Effect::SendFact(Fact { body: FactBody::Exited(report), .. })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((report.exit.cause, report.exit.code, report.message.as_str()), (Cause::Data, Some(1), "m"));
}

#[test]
fn shutdown_stops_replicas_reports_their_end_and_leaves() {
    let mut agent = state();
    attach(&mut agent);
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    assert_eq!(agent.on(Event::Shutdown, Millis(1)), [Effect::SendLeaving, Effect::Terminate(key(1))]);
    assert_eq!(agent.on(exited(1), Millis(2)).len(), 1);
    assert_eq!(agent.on(Event::Acknowledged(1), Millis(3)), [Effect::Leave]);
}

#[test]
fn a_recorded_checkpoint_is_told_to_the_replica() {
    let mut agent = state();
    attach(&mut agent);
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    let record = CheckpointRecord {
        step: Step(20),
        generation: Generation(1),
        manifest_url: String::new(),
        manifest_digest: String::new(),
        state_digest: String::new(),
        at: Millis(0),
    };
    agent.on(Event::Saved { key: key(1), record }, Millis(1));
    assert_eq!(agent.on(Event::Acknowledged(1), Millis(2)), [Effect::Recorded { key: key(1), step: Step(20) }]);
}

#[test]
fn heartbeats_leave_each_second_while_connected() {
    let mut agent = state();
    assert_eq!(agent.on(Event::Tick, Millis(5_000)), []);
    agent.on(Event::Connected, Millis(5_000));
    assert_eq!(agent.on(Event::Tick, Millis(5_999)), []);
    assert_eq!(agent.on(Event::Tick, Millis(6_000)), [Effect::Heartbeat(Heartbeat::default())]);
}

#[test]
fn the_master_speaks_for_the_job_and_every_replica_for_its_own_samples() {
    let mut agent = state();
    attach(&mut agent);
    let second = ReplicaKey { rank: Rank(1), ..key(1) };
    for launch in [launch(1), Launch { key: second.clone(), ..launch(1) }] {
        agent.on(Event::Order(Order::Launch(launch)), Millis(0));
    }
    let progress = Progress { step: Step(7), loss: 2.5, samples_by_rank: vec![30, 20], ..Progress::default() };
    let sent = agent.on(Event::Progressed { key: key(1), progress: progress.clone() }, Millis(1));
    assert_eq!(sent, [Effect::SendProgress { key: key(1), progress: progress.clone() }]);
    assert_eq!(agent.on(Event::Progressed { key: second.clone(), progress }, Millis(1)), []);
    let event = ended(second, Some(0), None, "");
    let effects = agent.on(event, Millis(2));
    let [Effect::SendFact(Fact { body: FactBody::Exited(report), .. })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((report.samples, report.last_step, report.loss), (20, Step(7), Some(2.5)));
}

/// Its peers fell with it, reported first, and the order to stop was faster than the news of its own end.
#[test]
fn a_fault_of_the_program_stays_its_fault_when_a_stop_came_before_it_was_seen() {
    let mut agent = state();
    attach(&mut agent);
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    agent.on(stop(1, 10), Millis(0));
    let event = ended(key(1), None, Some(4), "");
    let effects = agent.on(event, Millis(1));
    let [Effect::SendFact(Fact { body: FactBody::Exited(report), .. })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((report.exit.cause, report.exit.signal), (Cause::Unsaid, Some(4)));
}

/// SEQ-12.
#[test]
fn a_replica_killed_for_want_of_memory_says_so_unless_it_was_stopped() {
    for (stopped, cause) in [(false, Cause::OutOfMemory), (true, Cause::Stopped)] {
        let mut agent = state();
        attach(&mut agent);
        agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
        if stopped {
            agent.on(stop(1, 10), Millis(0));
        }
        let killed = Exited { code: None, signal: Some(9), out_of_memory: true };
        let effects = agent.on(Event::Exited { key: key(1), exited: killed, tail: String::new() }, Millis(1));
        let [Effect::SendFact(Fact { body: FactBody::Exited(report), .. })] = &effects[..] else {
            panic!("{effects:?}");
        };
        assert_eq!((report.exit.cause, report.exit.signal), (cause, Some(9)));
    }
}

fn pulse(agent: &mut AgentState, at: u64) {
    assert_eq!(agent.on(Event::Pulse { key: key(1) }, Millis(at)), []);
}

#[test]
fn a_replica_that_says_nothing_is_told_as_silent_and_ended_at_the_limit() {
    let mut agent = state();
    attach(&mut agent);
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    for at in (0..=60_000).step_by(500) {
        pulse(&mut agent, at);
        for effect in agent.on(Event::Tick, Millis(at)) {
            assert_eq!(effect, Effect::Heartbeat(Heartbeat::of([key(1)])), "at {at}");
        }
    }
    // From here on it is stopped.
    let mut silences = Vec::new();
    let mut killed = None;
    for at in (60_100..=95_000).step_by(100) {
        for effect in agent.on(Event::Tick, Millis(at)) {
            match effect {
                Effect::Heartbeat(heartbeat) => silences.push((at, heartbeat.silent)),
                Effect::Kill(_) => killed = killed.or(Some(at)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(killed, Some(90_100));
    let first = silences.iter().find(|(_, silent)| !silent.is_empty()).unwrap();
    assert_eq!(first, &(64_000, vec![(key(1), Millis(4_000))]));
    let effects = agent.on(ended(key(1), None, Some(SIGKILL), ""), Millis(95_100));
    let [Effect::SendFact(Fact { body: FactBody::Exited(report), .. })] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(report.exit.cause, Cause::Killed);
    assert_eq!(report.message, "it was silent for 30 s and its agent ended it");
}

#[test]
fn the_time_in_which_the_agent_stood_still_is_no_replica_s_silence() {
    let mut agent = state();
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    for at in (0..=25_000).step_by(100) {
        assert_eq!(agent.on(Event::Tick, Millis(at)), []);
    }
    // The whole machine was paused for an hour: 25 s of silence were before it.
    for at in (3_625_000..=3_630_000).step_by(100) {
        assert_eq!(agent.on(Event::Tick, Millis(at)), [], "at {at}");
    }
    assert_eq!(agent.on(Event::Tick, Millis(3_630_100)), [Effect::Kill(key(1))]);
}

/// What it was told to do it still does; the limit of its grace ends it sooner.
#[test]
fn a_silent_replica_that_is_being_stopped_is_ended_by_its_grace_alone() {
    let mut agent = state();
    agent.on(Event::Order(Order::Launch(launch(1))), Millis(0));
    agent.on(stop(1, 3_600), Millis(0));
    for at in (0..=60_000).step_by(100) {
        assert_eq!(agent.on(Event::Tick, Millis(at)), []);
    }
}
