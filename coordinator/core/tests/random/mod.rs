//! A small world of agents that act at random and answer as agents do.

use std::collections::{BTreeMap, BTreeSet};

use coord_common::exit_rule::{Cause, Exit};
use coord_common::{
    CheckpointRecord, Device, ExitReport, Fact, FactBody, Generation, Heartbeat, Incarnation, JobId, JobSettings,
    JobSpec, Millis, NumericClass, Order, Registration, ReplicaKey, RequestId, Step, WorkerId,
};
use coordinator_core::entry::{CancelBy, SubmitJob};
use coordinator_core::{ClusterState, Command, Entry, Liveness, Policy, apply, codec, orders, plan};
use proptest::prelude::*;

const WORKERS: u8 = 4;
const JOBS: u8 = 8;

#[derive(Debug, Clone)]
pub enum Act {
    Submit {
        job: u8,
        min: u32,
        max: u32,
        slots: u32,
        priority: u32,
    },
    Cancel {
        job: u8,
    },
    Delete {
        job: u8,
    },
    Register {
        worker: u8,
        restart: bool,
    },
    Disconnect {
        worker: u8,
    },
    Drain {
        worker: u8,
    },
    /// The agent does the next thing that its `choice`-th replica can do.
    Advance {
        worker: u8,
        choice: usize,
    },
    Exit {
        worker: u8,
        choice: usize,
        code: i32,
        cause: Cause,
    },
    Checkpoint {
        worker: u8,
        choice: usize,
        step: u64,
        back: u64,
    },
    /// Told as it is, whatever the agent has.
    Raw {
        worker: u8,
        job: u8,
        generation: u64,
        rank: u32,
        sequence: u64,
    },
    Plan,
    Wait {
        millis: u64,
    },
    Elect,
}

pub fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let worker = 0..WORKERS;
    let job = 0..JOBS;
    let cause = prop::sample::select(Cause::ALL.to_vec());
    let code = prop::sample::select(vec![0, 0, 1, 7, 134, 137, 143, 255]);
    let act = prop_oneof![
        4 => (job.clone(), 1_u32..4, 0_u32..3, 1_u32..3, 0_u32..2)
            .prop_map(|(job, min, more, slots, priority)| Act::Submit { job, min, max: min + more, slots, priority }),
        1 => job.clone().prop_map(|job| Act::Cancel { job }),
        1 => job.clone().prop_map(|job| Act::Delete { job }),
        4 => (worker.clone(), any::<bool>()).prop_map(|(worker, restart)| Act::Register { worker, restart }),
        1 => worker.clone().prop_map(|worker| Act::Disconnect { worker }),
        1 => worker.clone().prop_map(|worker| Act::Drain { worker }),
        12 => (worker.clone(), any::<usize>()).prop_map(|(worker, choice)| Act::Advance { worker, choice }),
        3 => (worker.clone(), any::<usize>(), code, cause)
            .prop_map(|(worker, choice, code, cause)| Act::Exit { worker, choice, code, cause }),
        2 => (worker.clone(), any::<usize>(), 0_u64..1000, 0_u64..2)
            .prop_map(|(worker, choice, step, back)| Act::Checkpoint { worker, choice, step, back }),
        1 => (worker, job, 0_u64..3, 0_u32..4, 0_u64..9).prop_map(|(worker, job, generation, rank, sequence)| Act::Raw {
            worker, job, generation, rank, sequence
        }),
        10 => Just(Act::Plan),
        2 => (0_u64..70_000).prop_map(|millis| Act::Wait { millis }),
        1 => Just(Act::Elect),
    ];
    prop::collection::vec(act, 1..most)
}

#[derive(Default)]
pub struct World {
    pub state: ClusterState,
    pub seen: Liveness,
    pub now: Millis,
    /// Everything applied so far, as bytes.
    pub entries: Vec<Vec<u8>>,
    agents: BTreeMap<WorkerId, Agent>,
    requests: u64,
}

struct Agent {
    incarnation: u64,
    sequence: u64,
    alive: BTreeSet<ReplicaKey>,
    /// Launched at most once each.
    known: BTreeSet<ReplicaKey>,
    connected: bool,
    leaving: bool,
}

impl World {
    pub fn apply(&mut self, command: Command) {
        let entry = Entry { at: self.now, proposal: 0, command };
        let bytes = codec::encode_entry(&entry);
        apply(&mut self.state, codec::decode_entry(&bytes).expect("own bytes are readable"));
        self.entries.push(bytes);
    }

    pub fn play(&mut self, act: &Act) {
        match act {
            Act::Submit { job, min, max, slots, priority } => self.submit(*job, *min, *max, *slots, *priority),
            Act::Cancel { job } => self.apply(Command::CancelJob { job: job_id(*job), by: CancelBy::User }),
            Act::Delete { job } => self.apply(Command::DeleteJob { job: job_id(*job) }),
            Act::Register { worker, restart } => self.register(*worker, *restart),
            Act::Disconnect { worker } => self.disconnect(*worker),
            Act::Drain { worker } => self.drain(*worker),
            Act::Advance { worker, choice } => self.advance(&worker_id(*worker), *choice),
            Act::Exit { worker, choice, code, cause } => {
                let exit = Exit { code: Some(*code), signal: None, cause: *cause };
                self.exit(&worker_id(*worker), *choice, exit);
            }
            Act::Checkpoint { worker, choice, step, back } => self.checkpoint(*worker, *choice, *step, *back),
            Act::Raw { worker, job, generation, rank, sequence } => {
                let rank = coord_common::Rank(*rank);
                let key = ReplicaKey { job: job_id(*job), generation: Generation(*generation), rank };
                let fact = Fact { sequence: *sequence, key, body: FactBody::Running { step: Step(1) } };
                let incarnation = Incarnation::parse("stranger").expect("valid");
                self.apply(Command::ReplicaFact { worker: worker_id(*worker), incarnation, fact });
            }
            Act::Plan => self.plan(),
            Act::Wait { millis } => self.now = self.now + Millis(*millis),
            Act::Elect => {
                self.seen = Liveness::new(self.now, Policy { keep_jobs: 3, ..Policy::default() });
                self.agents.values_mut().for_each(|agent| agent.connected = false);
            }
        }
    }

    /// All agents come back, answer, and train to the end; time passes until nothing changes any more.
    pub fn heal(&mut self) {
        // The largest gang here wants 3 replicas of 2 slots: one new host that holds it keeps every job possible.
        for worker in 0..=WORKERS {
            self.register(worker, true);
        }
        for _ in 0..400 {
            self.now = self.now + Millis(5_000);
            let ids: Vec<WorkerId> = self.agents.keys().cloned().collect();
            for id in &ids {
                self.heartbeat(id);
            }
            self.plan();
            for id in &ids {
                for choice in 0..8 {
                    self.advance(id, choice);
                }
            }
            if self.state.jobs().all(|job| job.phase.is_final() && !job.has_live_replicas()) {
                return;
            }
        }
    }

    fn plan(&mut self) {
        for command in plan(&self.state, &self.seen, self.now) {
            self.apply(command);
        }
    }

    fn submit(&mut self, job: u8, min: u32, max: u32, slots: u32, priority: u32) {
        let mut settings = JobSettings::new(job_id(job), "translate");
        (settings.workers, settings.slots_per_worker, settings.priority) = (min..=max, slots, priority);
        settings.labels.insert("kind".to_owned(), "random".to_owned());
        self.requests += 1;
        let request = RequestId::parse(&format!("r{}", self.requests % 6)).expect("valid");
        let spec = Box::new(JobSpec::new(settings).expect("valid"));
        self.apply(Command::SubmitJob(SubmitJob { request, spec, storage: "file:///s".to_owned() }));
    }

    fn register(&mut self, worker: u8, restart: bool) {
        let id = worker_id(worker);
        let is_new = restart || self.agents.get(&id).is_none_or(|agent| agent.leaving);
        if is_new {
            let incarnation = self.agents.get(&id).map_or(0, |agent| agent.incarnation) + 1;
            let (alive, known) = (BTreeSet::new(), BTreeSet::new());
            let agent = Agent { incarnation, sequence: 0, alive, known, connected: true, leaving: false };
            self.agents.insert(id.clone(), agent);
        }
        let agent = self.agents.get_mut(&id).expect("just made");
        agent.connected = true;
        let registration = Registration {
            worker: id.clone(),
            name: id.to_string(),
            incarnation: incarnation(agent),
            slots: if worker == WORKERS { 6 } else { u32::from(worker % 3) + 1 },
            device: Device::Cpu,
            numeric_class: NumericClass::new("x"),
            version: "0.1.0".to_owned(),
            host: id.to_string(),
            alive: agent.alive.iter().cloned().collect(),
            facts_acknowledged: agent.sequence,
        };
        self.apply(Command::RegisterWorker(registration));
        self.heartbeat(&id);
    }

    fn heartbeat(&mut self, id: &WorkerId) {
        let agent = &self.agents[id];
        if agent.connected {
            self.seen.heard(id, &incarnation(agent), Heartbeat::of(agent.alive.iter().cloned()), self.now);
        }
    }

    fn disconnect(&mut self, worker: u8) {
        let id = worker_id(worker);
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.connected = false;
        let incarnation = incarnation(agent);
        self.seen.disconnected(&id, &incarnation);
    }

    fn drain(&mut self, worker: u8) {
        let id = worker_id(worker);
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.leaving = true;
        let incarnation = incarnation(agent);
        self.apply(Command::DrainWorker { worker: id, incarnation });
    }

    /// One order, as a good agent takes it: launch and be ready, meet and run, stop; and a lone runner finishes its work.
    fn advance(&mut self, id: &WorkerId, choice: usize) {
        let Some(agent) = self.agents.get(id).filter(|agent| agent.connected) else { return };
        let reported: Vec<ReplicaKey> = agent.alive.iter().cloned().collect();
        let mut orders = orders::reconcile(&self.state, id, &reported);
        orders.retain(|order| !matches!(order, Order::Launch(launch) if agent.known.contains(&launch.key)));
        if orders.is_empty() {
            let exit = Exit { code: Some(0), signal: None, cause: Cause::Done };
            return self.exit(id, choice, exit);
        }
        let order = orders.swap_remove(choice % orders.len());
        let agent = self.agents.get_mut(id).expect("found above");
        match &order {
            Order::Launch(launch) => {
                agent.known.insert(launch.key.clone());
                agent.alive.insert(launch.key.clone());
                self.tell(id, &launch.key, FactBody::Ready { endpoint: format!("{id}:1") });
            }
            Order::Rendezvous(rendezvous) => self.tell(id, &rendezvous.key, FactBody::Running { step: Step(1) }),
            Order::Stop(stop) => {
                agent.known.insert(stop.key.clone());
                self.end(id, &stop.key, Exit { code: None, signal: Some(15), cause: Cause::Stopped });
            }
        }
    }

    /// Only replicas that run end by themselves here: what `advance` starts, it also brings up.
    fn exit(&mut self, id: &WorkerId, choice: usize, exit: Exit) {
        let Some(key) = self.pick(id, choice) else { return };
        self.end(id, &key, exit);
    }

    fn end(&mut self, id: &WorkerId, key: &ReplicaKey, exit: Exit) {
        self.agents.get_mut(id).expect("an agent").alive.remove(key);
        self.seen.replica_ended(id, key);
        self.tell(id, key, FactBody::Exited(ExitReport { exit, ..ExitReport::default() }));
    }

    fn checkpoint(&mut self, worker: u8, choice: usize, step: u64, back: u64) {
        let id = worker_id(worker);
        let Some(key) = self.pick(&id, choice) else { return };
        let record = CheckpointRecord {
            step: Step(step),
            generation: Generation(key.generation.0.saturating_sub(back)),
            manifest_url: "file:///s/m".to_owned(),
            manifest_digest: "aa".to_owned(),
            state_digest: "bb".to_owned(),
            at: self.now,
        };
        self.tell(&id, &key, FactBody::Checkpoint(record));
    }

    fn pick(&self, id: &WorkerId, choice: usize) -> Option<ReplicaKey> {
        let agent = self.agents.get(id).filter(|agent| agent.connected && !agent.alive.is_empty())?;
        agent.alive.iter().nth(choice % agent.alive.len()).cloned()
    }

    fn tell(&mut self, id: &WorkerId, key: &ReplicaKey, body: FactBody) {
        let agent = self.agents.get_mut(id).expect("an agent");
        agent.sequence += 1;
        let fact = Fact { sequence: agent.sequence, key: key.clone(), body };
        let incarnation = incarnation(agent);
        self.apply(Command::ReplicaFact { worker: id.clone(), incarnation, fact });
    }
}

fn incarnation(agent: &Agent) -> Incarnation {
    Incarnation::parse(&format!("i{}", agent.incarnation)).expect("valid")
}

fn job_id(number: u8) -> JobId {
    JobId::parse(&format!("j{number}")).expect("valid")
}

fn worker_id(number: u8) -> WorkerId {
    WorkerId::parse(&format!("w{number}")).expect("valid")
}
