//! Plays the commands of a scenario against the state machine, and checks it after each.

use std::collections::BTreeMap;

use coord_common::convert::cause_from_wire;
use coord_common::exit_rule::Exit;
use coord_common::{
    CheckpointRecord, Device, ExitReport, Fact, FactBody, Heartbeat, Incarnation, JobId, JobSettings, JobSpec, Millis,
    NumericClass, Order, Progress, Registration, ReplicaKey, RequestId, Step, WorkerId,
};
use coordinator_core::entry::{CancelBy, SubmitJob};
use coordinator_core::{
    ClusterState, Command, Entry, Liveness, Policy, apply, check, codec, explain, orders, plan, view,
};

use super::answer;
use super::line::{Line, time};

pub struct Runner {
    name: String,
    state: ClusterState,
    seen: Liveness,
    now: Millis,
    /// What each agent knows of itself: its incarnation and the number of its last fact.
    agents: BTreeMap<WorkerId, (Incarnation, u64)>,
}

impl Runner {
    pub fn new(name: &str) -> Runner {
        Runner {
            name: name.to_owned(),
            state: ClusterState::default(),
            seen: Liveness::new(Millis::ZERO, Policy { keep_jobs: 3, ..Policy::default() }),
            now: Millis::ZERO,
            agents: BTreeMap::new(),
        }
    }

    pub fn run(&mut self, text: &str) -> Vec<String> {
        if let Some(rest) = text.strip_prefix("quiet ") {
            self.run(rest);
            return Vec::new();
        }
        let line = Line::parse(text);
        match line.verb {
            "at" => {
                self.now = time(line.name(0));
                Vec::new()
            }
            "worker" => self.worker(&line),
            "heartbeat" | "connect" => self.heartbeat(&line),
            "gauge" => self.gauge(&line),
            "disconnect" => self.disconnect(&line),
            "elect" => {
                self.seen = Liveness::new(self.now, self.seen.policy);
                Vec::new()
            }
            "submit" => self.submit(&line),
            "cancel" => self.entry(Command::CancelJob { job: line.job(0), by: CancelBy::User }),
            "delete" => self.entry(Command::DeleteJob { job: line.job(0) }),
            "drain" => {
                let (worker, incarnation) = self.agent(&line);
                self.entry(Command::DrainWorker { worker, incarnation })
            }
            "lose" => {
                let (worker, incarnation) = self.agent(&line);
                self.entry(Command::LoseWorker { worker, incarnation, reason: "told by the scenario".to_owned() })
            }
            "plan" => self.plan(),
            "start" => self.start(&line.job(0), line.number("step").unwrap_or(1)),
            "ready" | "running" | "exit" | "checkpoint" | "refuse" => self.fact(&line),
            "show" => self.state.job(&line.job(0)).map_or(vec!["no such job".to_owned()], answer::job),
            "why" => self.why(&line.job(0)),
            "log" => self.log(&line.job(0)),
            "slots" => answer::slots(&self.state),
            "reconcile" => self.reconcile(&line),
            other => panic!("{}: {other:?} is no command", self.name),
        }
    }

    /// A snapshot of the end holds all of it.
    pub fn finish(&self) {
        let copy = codec::decode_snapshot(&codec::encode_snapshot(&self.state)).expect("own bytes are readable");
        assert!(copy == self.state, "{}: the snapshot differs from the state", self.name);
    }

    fn entry(&mut self, command: Command) -> Vec<String> {
        let entry = Entry { at: self.now, proposal: 0, command };
        let entry = codec::decode_entry(&codec::encode_entry(&entry)).expect("own bytes are readable");
        let applied = apply(&mut self.state, entry);
        let violations: Vec<String> = check(&self.state).iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{}: {violations:?}", self.name);
        let reply = answer::reply(&applied.reply);
        reply.into_iter().chain(applied.effects.iter().filter_map(answer::effect)).collect()
    }

    fn plan(&mut self) -> Vec<String> {
        let commands = plan(&self.state, &self.seen, self.now);
        let mut answers = Vec::new();
        for command in commands {
            answers.extend(answer::proposal(&command));
            answers.extend(self.entry(command));
        }
        if answers.is_empty() { vec!["nothing to do".to_owned()] } else { answers }
    }

    /// Places the job if it waits, and brings all its replicas up: what a scenario about later things begins with.
    fn start(&mut self, id: &JobId, step: u64) -> Vec<String> {
        self.plan();
        let job = self.state.job(id).expect("a job");
        let replicas: Vec<(WorkerId, ReplicaKey)> =
            job.live().map(|(rank, replica)| (replica.worker.clone(), job.key(rank))).collect();
        for (worker, key) in &replicas {
            let endpoint = format!("{worker}:{}", 9000 + key.rank.0);
            self.told(worker, key, FactBody::Ready { endpoint });
        }
        self.plan();
        for (worker, key) in &replicas {
            self.told(worker, key, FactBody::Running { step: Step(step) });
            if let Some(seen) = self.seen.workers.get_mut(worker) {
                seen.alive.insert(key.clone());
            }
        }
        let job = self.state.job(id).expect("a job");
        vec![format!("{id} {} gen={} with {}", job.phase, job.generation, job.replicas.len())]
    }

    fn worker(&mut self, line: &Line) -> Vec<String> {
        let worker = worker_id(line.name(0));
        let incarnation = Incarnation::parse(line.get("incarnation").unwrap_or("1")).expect("an incarnation");
        let alive = line.keys("alive");
        let known = self.agents.get(&worker).filter(|(known, _)| *known == incarnation);
        let sequence = known.map_or(0, |(_, sequence)| *sequence);
        self.agents.insert(worker.clone(), (incarnation.clone(), sequence));
        self.heard(&worker, alive.clone(), Vec::new());
        let registration = Registration {
            name: line.get("name").map_or(format!("{worker}.example"), str::to_owned),
            host: worker.to_string(),
            worker,
            incarnation,
            slots: line.number("slots").unwrap_or(1),
            device: device(line),
            numeric_class: NumericClass::new(line.get("class").unwrap_or("x")),
            version: "0.1.0".to_owned(),
            alive,
            facts_acknowledged: sequence,
        };
        self.entry(Command::RegisterWorker(registration))
    }

    fn heard(&mut self, worker: &WorkerId, alive: Vec<ReplicaKey>, silent: Vec<(ReplicaKey, Millis)>) -> Vec<String> {
        let (incarnation, _) = &self.agents[worker];
        self.seen.heard(worker, incarnation, Heartbeat { alive, silent }, self.now);
        Vec::new()
    }

    fn heartbeat(&mut self, line: &Line) -> Vec<String> {
        let silence = Millis::from_seconds(line.number("silence").unwrap_or(0));
        let silent = line.keys("silent").into_iter().map(|key| (key, silence)).collect();
        self.heard(&worker_id(line.name(0)), line.keys("alive"), silent)
    }

    /// What the master replica of a job says of it.
    fn gauge(&mut self, line: &Line) -> Vec<String> {
        let progress = Progress {
            step: Step(line.number("step").unwrap_or(0)),
            seconds_per_step: line.number("seconds").unwrap_or(0.0),
            stage: line.text_of("stage"),
            at: self.now,
            ..Progress::default()
        };
        self.seen.progress.insert(line.job(0), progress);
        Vec::new()
    }

    fn disconnect(&mut self, line: &Line) -> Vec<String> {
        let (worker, incarnation) = self.agent(line);
        self.seen.disconnected(&worker, &incarnation);
        Vec::new()
    }

    fn agent(&self, line: &Line) -> (WorkerId, Incarnation) {
        let worker = worker_id(line.name(0));
        let incarnation = self.agents[&worker].0.clone();
        (worker, incarnation)
    }

    fn submit(&mut self, line: &Line) -> Vec<String> {
        let job = line.job(0);
        let mut settings = JobSettings::new(job.clone(), "translate");
        let (min, max) = line.get("workers").map_or(("1", "1"), |text| text.split_once(':').unwrap_or((text, text)));
        settings.workers = min.parse().expect("a number")..=max.parse().expect("a number");
        settings.device = device(line);
        settings.slots_per_worker = line.number("slots").unwrap_or(settings.slots_per_worker);
        settings.priority = line.number("priority").unwrap_or(settings.priority);
        settings.max_restarts = line.number("restarts").unwrap_or(settings.max_restarts);
        settings.max_running = line.get("max-running").map_or(settings.max_running, time);
        settings.grace = line.get("grace").map_or(settings.grace, time);
        let request = line.get("request").map_or(format!("request-of-{job}"), str::to_owned);
        self.entry(Command::SubmitJob(SubmitJob {
            request: RequestId::parse(&request).expect("a request id"),
            spec: Box::new(JobSpec::new(settings).expect("a valid spec")),
            storage: "file:///storage".to_owned(),
        }))
    }

    fn fact(&mut self, line: &Line) -> Vec<String> {
        let (worker, key) = (worker_id(line.name(0)), line.key(1));
        let step = Step(line.number("step").unwrap_or(0));
        let body = match line.verb {
            "ready" => FactBody::Ready { endpoint: format!("{worker}:{}", 9000 + key.rank.0) },
            "running" => FactBody::Running { step },
            "checkpoint" => FactBody::Checkpoint(CheckpointRecord {
                step,
                generation: key.generation,
                manifest_url: format!("file:///storage/jobs/{}/train/translate.ckpt-{step}.json", key.job),
                manifest_digest: "aa".to_owned(),
                state_digest: "bb".to_owned(),
                at: self.now,
            }),
            "refuse" => FactBody::Refused { reason: line.text_of("reason") },
            _ => FactBody::Exited(ExitReport {
                exit: Exit {
                    code: line.number("code"),
                    signal: line.number("signal"),
                    cause: cause_from_wire(line.get("cause").unwrap_or("")),
                },
                message: line.text_of("message"),
                tail: line.text_of("tail"),
                last_step: step,
                steps: None,
                loss: None,
                samples: 0,
            }),
        };
        let Some(sequence) = line.number("sequence") else { return self.told(&worker, &key, body) };
        let known = self.agents[&worker].0.clone();
        let incarnation = line.get("incarnation").map_or(known, |text| Incarnation::parse(text).expect("valid"));
        self.entry(Command::ReplicaFact { worker, incarnation, fact: Fact { sequence, key, body } })
    }

    /// The next fact of this agent, on its way through the log.
    fn told(&mut self, worker: &WorkerId, key: &ReplicaKey, body: FactBody) -> Vec<String> {
        if matches!(body, FactBody::Exited(_) | FactBody::Refused { .. }) {
            self.seen.replica_ended(worker, key);
        }
        let (incarnation, sequence) = self.agents.get_mut(worker).expect("an agent");
        *sequence += 1;
        let fact = Fact { sequence: *sequence, key: key.clone(), body };
        let command = Command::ReplicaFact { worker: worker.clone(), incarnation: incarnation.clone(), fact };
        self.entry(command)
    }

    fn why(&self, id: &JobId) -> Vec<String> {
        let blockers = explain(&self.state, &self.seen, self.now, id);
        if blockers.is_empty() {
            return vec!["no reason".to_owned()];
        }
        blockers.iter().map(|blocker| format!("{}: {blocker}", blocker.code())).collect()
    }

    fn log(&self, id: &JobId) -> Vec<String> {
        let lines = view::service_lines(&self.state, id);
        let read = |line: &coord_proto::v1::LogLine| {
            format!("{} {} {}", line.severity, answer::at(Millis(line.at_millis)), line.text)
        };
        lines.iter().map(read).collect()
    }

    fn reconcile(&self, line: &Line) -> Vec<String> {
        let orders = orders::reconcile(&self.state, &worker_id(line.name(0)), &line.keys("reported"));
        if orders.is_empty() { vec!["nothing".to_owned()] } else { orders.iter().map(Order::to_string).collect() }
    }
}

fn worker_id(name: &str) -> WorkerId {
    WorkerId::parse(name).expect("a worker id")
}

fn device(line: &Line) -> Device {
    if line.get("device") == Some("cuda") { Device::Cuda } else { Device::Cpu }
}
