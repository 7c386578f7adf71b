//! A member that has lost what it promised: found out, kept from voting, filled again.

use raft::eraftpb::{Message, MessageType};

use crate::raft::driver::{Driver, DriverError, Effect, Event, TICK_MILLIS};
use crate::raft::identity::Stage;
use crate::raft::log::memory::MemoryLog;

const VOTERS: [u64; 3] = [1, 2, 3];

fn third(stage: Stage) -> Driver<MemoryLog> {
    Driver::new(3, MemoryLog::new(&VOTERS), stage, 0).expect("a fresh log")
}

fn message(kind: MessageType, from: u64, term: u64) -> Message {
    let mut message = Message::default();
    message.set_msg_type(kind);
    message.from = from;
    message.to = 3;
    message.term = term;
    message
}

/// An append after `previous` (index and term) of entries of `term` up to `last`.
fn append(term: u64, previous: (u64, u64), last: u64, commit: u64) -> Event {
    let mut message = message(MessageType::MsgAppend, 1, term);
    (message.index, message.log_term) = previous;
    message.commit = commit;
    let entry = |index| raft::eraftpb::Entry { index, term, ..raft::eraftpb::Entry::default() };
    message.entries.extend((previous.0 + 1..=last).map(entry));
    Event::Receive(message)
}

fn votes(effects: &[Effect]) -> usize {
    let is_vote = |effect: &&Effect| match effect {
        Effect::Send(message) => message.get_msg_type() == MessageType::MsgRequestVoteResponse && !message.reject,
        _ => false,
    };
    effects.iter().filter(is_vote).count()
}

fn ask_for_vote(driver: &mut Driver<MemoryLog>, from: u64, term: u64) -> usize {
    let mut message = message(MessageType::MsgRequestVote, from, term);
    (message.index, message.log_term) = (100, term - 1);
    // As in a handed-over lead: no lease of an older leader stands in the way.
    message.context = b"CampaignTransfer".to_vec().into();
    votes(&driver.on([Event::Receive(message)], 0).expect("no error"))
}

#[test]
fn a_heartbeat_that_promises_more_than_the_log_holds_is_an_error_and_no_panic() {
    let mut driver = third(Stage::Used);
    let mut heartbeat = message(MessageType::MsgHeartbeat, 1, 4);
    heartbeat.commit = 900;
    let error = driver.on([Event::Receive(heartbeat)], 0).expect_err("the log is gone");
    assert!(matches!(error, DriverError::LostEntries { member: 1, acknowledged: 900, last: 0 }), "{error}");
}

#[test]
fn a_new_directory_is_silent_until_the_members_have_answered() {
    let mut driver = third(Stage::New);
    let mut heartbeat = message(MessageType::MsgHeartbeat, 1, 4);
    heartbeat.commit = 900;
    let effects = driver.on([Event::Receive(heartbeat), append(4, (0, 0), 3, 3)], 60 * TICK_MILLIS).expect("no error");
    assert!(effects.is_empty(), "{effects:?}");
    assert_eq!(ask_for_vote(&mut driver, 2, 9), 0);
    assert_eq!(driver.status().term, 0);
    driver.on([Event::TakePart(Stage::Admitted)], 60 * TICK_MILLIS).expect("no error");
    assert_eq!(ask_for_vote(&mut driver, 2, 9), 1);
}

#[test]
fn who_replaces_a_lost_directory_votes_only_after_it_has_all_that_was_committed() {
    let mut driver = third(Stage::New);
    driver.on([Event::TakePart(Stage::CatchingUp { term: 4 })], 0).expect("no error");
    assert_eq!(driver.status().term, 4);
    assert_eq!(ask_for_vote(&mut driver, 2, 5), 0);
    // The leader has committed 10, of which the first 6 come now.
    let effects = driver.on([append(4, (0, 0), 6, 10)], 0).expect("no error");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::CaughtUp)));
    assert_eq!(ask_for_vote(&mut driver, 2, 5), 0);
    let effects = driver.on([append(4, (6, 4), 10, 10)], 0).expect("no error");
    assert!(effects.iter().any(|effect| matches!(effect, Effect::CaughtUp)), "{effects:?}");
    // Not even now a vote in a term in which the lost directory may have voted.
    assert_eq!(ask_for_vote(&mut driver, 2, 4), 0);
    assert_eq!(ask_for_vote(&mut driver, 2, 5), 1);
}

#[test]
fn what_the_leader_has_not_committed_in_its_own_term_does_not_count_as_caught_up() {
    let mut driver = third(Stage::CatchingUp { term: 4 });
    let old = |event: Event| match event {
        Event::Receive(mut message) => {
            message.term = 5;
            Event::Receive(message)
        }
        other => other,
    };
    // Entries of term 4 from a leader of term 5, which may not know yet what else is committed.
    let effects = driver.on([old(append(4, (0, 0), 6, 6))], 0).expect("no error");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::CaughtUp)));
    let effects = driver.on([append(5, (6, 4), 7, 7)], 0).expect("no error");
    assert!(effects.iter().any(|effect| matches!(effect, Effect::CaughtUp)), "{effects:?}");
}

#[test]
fn who_catches_up_does_not_campaign() {
    let mut driver = third(Stage::CatchingUp { term: 4 });
    for tick in 1..100 {
        let effects = driver.on([Event::Tick], tick * TICK_MILLIS).expect("no error");
        assert!(effects.is_empty(), "{effects:?}");
    }
}

#[test]
fn a_member_that_knows_another_directory_stops_a_new_node_and_a_majority_any() {
    let known_by = |member| [Event::KnownByAnother { member }];
    let error = third(Stage::New).on(known_by(2), 0).expect_err("refused");
    assert_eq!(error.to_string(), "node 2 knows this node by another data directory");
    // It may be the one member that was put back from an old copy.
    let mut used = third(Stage::Used);
    for _ in 0..2 {
        used.on(known_by(2), 0).expect("one of two others");
    }
    used.on(known_by(1), 0).expect_err("both others");
}
