//! Which agents this leader hears, through which stream, and what they were told lately.

use std::collections::BTreeMap;
use std::time::Duration;

use coord_common::{Heartbeat, Incarnation, Millis, Order, Progress, ReplicaKey, WorkerId};
use coord_proto::v1::LeaderMessage;
use coordinator_core::{Liveness, Policy};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// An order whose effect does not show is told again after this long.
const REPEAT_AFTER: Millis = Millis(1_000);

/// The leader looks at its clock this often; more than [`STOOD_STILL`] between two looks means that it did not run: it was
/// stopped, swapped out, or its machine was paused.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Together with the time between two heartbeats less than the shortest lease.
const STOOD_STILL: Millis = Millis(500);

pub type Outgoing = mpsc::Sender<Result<LeaderMessage, Status>>;

struct Stream {
    number: u64,
    outgoing: Outgoing,
    told: BTreeMap<(ReplicaKey, u8), (Order, Millis)>,
    /// Dropped when a newer stream of the same worker takes over: ends the older one.
    _superseded: oneshot::Sender<()>,
}

/// Begun anew at each election: nobody counts as silent before this leader could hear it.
#[derive(Default)]
pub struct Agents {
    pub liveness: Liveness,
    /// The term in which this node leads; 0 before it ever did.
    term: u64,
    streams: BTreeMap<WorkerId, Stream>,
    numbers: u64,
    /// When this leader looked at its clock last; nothing before the first look.
    looked: Option<Millis>,
}

impl Agents {
    /// This node leads in `term`. Only the first call of a term begins anew: whoever comes first makes it, the first
    /// agent or the first decision.
    pub fn begin(&mut self, term: u64, now: Millis, policy: Policy) {
        if self.term == term {
            return;
        }
        self.term = term;
        self.liveness = Liveness::new(now, policy);
        self.streams.clear();
    }

    /// Call every [`LOOK_EVERY`], and before each decision. Gives the time in which this process stood still.
    pub fn look(&mut self, now: Millis) -> Option<Millis> {
        let last = self.looked.replace(now)?;
        let gap = now.since(last);
        let stood_still = gap > STOOD_STILL;
        if stood_still {
            self.liveness.stood_still(gap, now);
        }
        stood_still.then_some(gap)
    }

    /// A stream that registered; an older one of the same worker ends. The receiver completes when this one is replaced.
    pub fn attach(
        &mut self,
        worker: &WorkerId,
        incarnation: &Incarnation,
        outgoing: Outgoing,
        alive: Vec<ReplicaKey>,
        now: Millis,
    ) -> (u64, oneshot::Receiver<()>) {
        self.numbers += 1;
        let (superseded, replaced) = oneshot::channel();
        let stream = Stream { number: self.numbers, outgoing, told: BTreeMap::new(), _superseded: superseded };
        self.streams.insert(worker.clone(), stream);
        self.liveness.heard(worker, incarnation, Heartbeat::of(alive), now);
        (self.numbers, replaced)
    }

    /// The stream ended; nothing if another one took over before.
    pub fn detach(&mut self, worker: &WorkerId, incarnation: &Incarnation, stream: u64) {
        if self.is_current(worker, stream) {
            self.streams.remove(worker);
            self.liveness.disconnected(worker, incarnation);
        }
    }

    /// A heartbeat.
    pub fn heard(
        &mut self,
        worker: &WorkerId,
        incarnation: &Incarnation,
        stream: u64,
        heartbeat: Heartbeat,
        now: Millis,
    ) {
        if self.is_current(worker, stream) {
            self.liveness.heard(worker, incarnation, heartbeat, now);
        }
    }

    pub fn alive(&self, worker: &WorkerId) -> Vec<ReplicaKey> {
        self.liveness.workers.get(worker).map(|seen| seen.alive.iter().cloned().collect()).unwrap_or_default()
    }

    /// Of these orders, the ones that were not told within the last second in the same words.
    pub fn due(&mut self, worker: &WorkerId, orders: Vec<Order>, now: Millis) -> Vec<Order> {
        let Some(stream) = self.streams.get_mut(worker) else { return Vec::new() };
        stream.told.retain(|_, (_, at)| *at + REPEAT_AFTER > now);
        let mut due = Vec::new();
        for order in orders {
            let slot = (order.key().clone(), kind(&order));
            if stream.told.get(&slot).is_none_or(|(told, _)| *told != order) {
                stream.told.insert(slot, (order.clone(), now));
                due.push(order);
            }
        }
        due
    }

    pub fn outgoing(&self, worker: &WorkerId) -> Option<Outgoing> {
        self.streams.get(worker).map(|stream| stream.outgoing.clone())
    }

    pub fn connected(&self) -> Vec<WorkerId> {
        self.streams.keys().cloned().collect()
    }

    /// A gauge from the master replica.
    pub fn progressed(&mut self, key: &ReplicaKey, progress: Progress, now: Millis) {
        self.liveness.progress.insert(key.job.clone(), Progress { at: now, ..progress });
    }

    fn is_current(&self, worker: &WorkerId, stream: u64) -> bool {
        self.streams.get(worker).is_some_and(|open| open.number == stream)
    }
}

fn kind(order: &Order) -> u8 {
    match order {
        Order::Launch(_) => 0,
        Order::Rendezvous(_) => 1,
        Order::Stop(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use coord_common::order::Stop;
    use coord_common::{Generation, JobId, Rank, StopReason};

    use super::*;

    fn worker() -> WorkerId {
        WorkerId::parse("w").expect("valid")
    }

    fn incarnation() -> Incarnation {
        Incarnation::parse("i").expect("valid")
    }

    fn attached(agents: &mut Agents) -> (u64, oneshot::Receiver<()>) {
        let (outgoing, _) = mpsc::channel(1);
        agents.attach(&worker(), &incarnation(), outgoing, Vec::new(), Millis(0))
    }

    fn stop(reason: StopReason) -> Order {
        let job = JobId::parse("job").expect("valid");
        let key = ReplicaKey { job, generation: Generation(1), rank: Rank(0) };
        Order::Stop(Stop { key, reason, grace: Millis::ZERO })
    }

    #[test]
    fn an_order_is_repeated_after_a_second_or_when_it_changes() {
        let mut agents = Agents::default();
        let _stream = attached(&mut agents);
        let cancelled = stop(StopReason::Cancelled);
        let superseded = stop(StopReason::Superseded);
        assert_eq!(agents.due(&worker(), vec![cancelled.clone()], Millis(0)), std::slice::from_ref(&cancelled));
        assert_eq!(agents.due(&worker(), vec![cancelled], Millis(999)), []);
        assert_eq!(agents.due(&worker(), vec![superseded.clone()], Millis(999)), std::slice::from_ref(&superseded));
        assert_eq!(agents.due(&worker(), vec![superseded.clone()], Millis(1_999)), [superseded]);
    }

    #[test]
    fn a_term_begins_once_and_forgets_whom_the_last_one_heard() {
        let mut agents = Agents::default();
        agents.begin(3, Millis(10), Policy::default());
        let (_, mut replaced) = attached(&mut agents);
        agents.begin(3, Millis(20), Policy::default());
        assert_eq!(agents.connected(), [worker()]);
        assert_eq!(agents.liveness.since, Millis(10));
        agents.begin(4, Millis(30), Policy::default());
        assert_eq!(agents.connected(), []);
        assert_eq!(agents.liveness.since, Millis(30));
        assert_eq!(replaced.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn the_time_in_which_the_leader_stood_still_is_nobody_s_silence() {
        let mut agents = Agents::default();
        agents.begin(1, Millis(0), Policy::default());
        let (stream, _replaced) = attached(&mut agents);
        for now in (0..=1_000).step_by(100) {
            assert_eq!(agents.look(Millis(now)), None);
        }
        // Back after a minute. Its heartbeats waited in the socket; one is read before the leader looks at its clock.
        agents.heard(&worker(), &incarnation(), stream, Heartbeat::default(), Millis(61_000));
        assert_eq!(agents.look(Millis(61_050)), Some(Millis(60_050)));
        assert_eq!(agents.liveness.workers[&worker()].last_heartbeat, Millis(61_050));
        assert_eq!(agents.liveness.since, Millis(60_050));
        assert_eq!(agents.look(Millis(121_050)), Some(Millis(60_000)));
        assert_eq!(agents.liveness.workers[&worker()].last_heartbeat, Millis(121_050));
        // Silence goes on to count from where it was.
        for now in (121_100..=125_000).step_by(100) {
            assert_eq!(agents.look(Millis(now)), None);
        }
        assert_eq!(agents.look(Millis(185_000)), Some(Millis(60_000)));
        assert_eq!(agents.liveness.workers[&worker()].last_heartbeat, Millis(181_050));
    }

    #[test]
    fn a_newer_stream_ends_the_older_one_whose_end_changes_nothing() {
        let mut agents = Agents::default();
        let (first, mut replaced) = attached(&mut agents);
        let _second = attached(&mut agents);
        assert_eq!(replaced.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        agents.detach(&worker(), &incarnation(), first);
        assert_eq!(agents.connected(), [worker()]);
        agents.heard(&worker(), &incarnation(), first, Heartbeat::default(), Millis(500));
        assert_eq!(agents.liveness.workers[&worker()].last_heartbeat, Millis(0));
    }
}
