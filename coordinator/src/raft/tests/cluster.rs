//! Three drivers over a tiny network model: election, replication, a lost leader, a snapshot for a late follower.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use raft::eraftpb::Message;

use crate::raft::driver::{Driver, Effect, Event, Refusal, TICK_MILLIS};
use crate::raft::identity::Stage;
use crate::raft::log::memory::MemoryLog;

/// Delivers in order, at once, unless a member is cut off. Time moves only by [`Network::pass`].
struct Network {
    drivers: BTreeMap<u64, Driver<MemoryLog>>,
    cut_off: BTreeSet<u64>,
    in_flight: VecDeque<Message>,
    now: u64,
    /// The state machine of each member: what it applied, in order.
    applied: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Everything else that came out, with the member it came from.
    seen: Vec<(u64, Effect)>,
}

impl Network {
    fn new(count: u64) -> Self {
        let voters: Vec<u64> = (1..=count).collect();
        let drivers = voters
            .iter()
            .map(|node| {
                let log = MemoryLog::with_entries_kept(&voters, 2);
                (*node, Driver::new(*node, log, Stage::Used, 0).expect("a fresh log"))
            })
            .collect();
        let applied = voters.iter().map(|node| (*node, Vec::new())).collect();
        Self { drivers, cut_off: BTreeSet::new(), in_flight: VecDeque::new(), now: 0, applied, seen: Vec::new() }
    }

    fn on(&mut self, node: u64, event: Event) {
        let effects =
            self.drivers.get_mut(&node).expect("a member").on([event], self.now).expect("memory does not fail");
        for effect in effects {
            match effect {
                Effect::Send(message) => self.in_flight.push_back(message),
                Effect::Apply(committed) => self.applied.get_mut(&node).expect("a member").push(committed.data),
                Effect::Restore { data, .. } => {
                    let entries = data.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                    self.applied.insert(node, entries);
                }
                other => self.seen.push((node, other)),
            }
        }
    }

    fn settle(&mut self) {
        while let Some(message) = self.in_flight.pop_front() {
            if self.cut_off.contains(&message.from) || self.cut_off.contains(&message.to) {
                continue;
            }
            self.on(message.to, Event::Receive(message));
        }
    }

    fn pass(&mut self, ticks: u64) {
        let nodes: Vec<u64> = self.drivers.keys().copied().collect();
        for _ in 0..ticks {
            self.now += TICK_MILLIS;
            for node in &nodes {
                self.on(*node, Event::Tick);
            }
            self.settle();
        }
    }

    /// The leader among those not cut off; time passes until there is one.
    fn leader(&mut self) -> u64 {
        for _ in 0..200 {
            let found = self
                .drivers
                .iter()
                .find(|(node, driver)| !self.cut_off.contains(node) && driver.status().leads)
                .map(|(node, _)| *node);
            if let Some(node) = found {
                return node;
            }
            self.pass(1);
        }
        panic!("no leader within 20 s");
    }

    fn propose(&mut self, node: u64, number: u64, text: &str) {
        self.on(node, Event::Propose { number, data: text.as_bytes().to_vec() });
        self.settle();
    }

    fn compact(&mut self, node: u64) {
        let data = self.applied[&node].join(&b'\n');
        self.drivers.get_mut(&node).expect("a member").compact(data).expect("memory does not fail");
    }
}

fn texts(entries: &[Vec<u8>]) -> Vec<&str> {
    entries.iter().map(|entry| std::str::from_utf8(entry).expect("text")).collect()
}

#[test]
fn a_lone_voter_leads_at_once() {
    let mut network = Network::new(1);
    network.on(1, Event::Tick);
    assert!(network.drivers[&1].status().leads);
    network.propose(1, 7, "a");
    assert_eq!(texts(&network.applied[&1]), ["a"]);
}

#[test]
fn an_entry_is_applied_by_every_member_in_the_same_order() {
    let mut network = Network::new(3);
    let leader = network.leader();
    for (number, text) in ["a", "b", "c"].iter().enumerate() {
        network.propose(leader, number as u64, text);
    }
    network.pass(2);
    for applied in network.applied.values() {
        assert_eq!(texts(applied), ["a", "b", "c"]);
    }
}

#[test]
fn a_follower_refuses_proposals_and_knows_the_leader() {
    let mut network = Network::new(3);
    let leader = network.leader();
    network.pass(1);
    let follower = if leader == 1 { 2 } else { 1 };
    network.seen.clear();
    network.propose(follower, 9, "a");
    assert!(matches!(network.seen[..], [(_, Effect::ProposalRefused { number: 9, refusal: Refusal::NotLeader })]));
    assert_eq!(network.drivers[&follower].status().leader, leader);
}

#[test]
fn a_lost_leader_is_replaced_and_its_committed_entries_stay() {
    let mut network = Network::new(3);
    let first = network.leader();
    network.propose(first, 1, "before");
    network.cut_off.insert(first);
    // Taken by a leader that can reach nobody: never committed.
    network.propose(first, 2, "lost");
    let second = network.leader();
    assert_ne!(first, second);
    network.propose(second, 3, "after");
    network.seen.clear();
    network.cut_off.clear();
    network.pass(30);
    for applied in network.applied.values() {
        assert_eq!(texts(applied), ["before", "after"]);
    }
}

#[test]
fn a_leader_that_hears_nobody_gives_up_its_lead() {
    let mut network = Network::new(3);
    let first = network.leader();
    network.cut_off.insert(first);
    network.pass(30);
    assert!(network.seen.iter().any(|(node, effect)| *node == first && matches!(effect, Effect::LeadLost)));
    assert!(!network.drivers[&first].status().leads);
}

#[test]
fn a_read_is_confirmed_by_a_quorum_and_refused_without_one() {
    let mut network = Network::new(3);
    let leader = network.leader();
    network.propose(leader, 1, "a");
    network.on(leader, Event::Read { number: 5, deadline: u64::MAX });
    assert!(!network.seen.iter().any(|(_, effect)| matches!(effect, Effect::ReadReady { .. })), "asked nobody");
    network.settle();
    assert!(network.seen.iter().any(|(_, effect)| matches!(effect, Effect::ReadReady { number: 5 })));

    network.cut_off.insert(leader);
    network.on(leader, Event::Read { number: 6, deadline: u64::MAX });
    network.pass(30);
    assert!(network.seen.iter().any(|(_, effect)| matches!(effect, Effect::ReadRefused { number: 6 })));
}

#[test]
fn a_lost_read_request_is_asked_again() {
    let mut network = Network::new(3);
    let leader = network.leader();
    network.propose(leader, 1, "a");
    network.on(leader, Event::Read { number: 5, deadline: u64::MAX });
    network.in_flight.clear();
    network.pass(5);
    assert!(network.seen.iter().any(|(_, effect)| matches!(effect, Effect::ReadReady { number: 5 })));
}

#[test]
fn a_follower_far_behind_receives_a_snapshot() {
    let mut network = Network::new(3);
    let leader = network.leader();
    network.pass(2);
    let late = if leader == 3 { 2 } else { 3 };
    network.cut_off.insert(late);
    let all: Vec<String> = (0..20).map(|number| format!("entry {number}")).collect();
    for (number, text) in all.iter().enumerate() {
        network.propose(leader, number as u64, text);
    }
    network.compact(leader);
    network.cut_off.clear();
    network.pass(20);
    assert_eq!(texts(&network.applied[&late]), all);
    network.propose(leader, 99, "more");
    network.pass(2);
    assert_eq!(network.applied[&late].last().map(Vec::as_slice), Some(&b"more"[..]));
}

#[test]
fn a_leader_that_stops_hands_over_without_an_election_timeout() {
    let mut network = Network::new(3);
    for ticks in [0, 2] {
        let first = network.leader();
        network.pass(ticks);
        network.on(first, Event::GiveUpLead);
        network.settle();
        assert!(!network.drivers[&first].status().leads);
        let second = network.drivers.values().find(|driver| driver.status().leads);
        assert!(second.is_some_and(|driver| driver.status().node != first), "no time had to pass");
    }
}
