//! What only the leading node does: hears agents, decides, tells agents, relays questions.

pub mod agents;
mod duties;
pub mod requests;
pub mod streams;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coord_common::{JobId, Millis, Order, Progress, WorkerId, convert};
use coord_proto::v1;
use coordinator_core::{Effect, Policy, orders, view};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::handle::CoordinatorHandle;
use agents::{Agents, Outgoing};
use requests::{RequestError, Requests};

/// Rounds of effects that may wait; what does not fit is told with the next heartbeat.
const EFFECTS: usize = 1_024;

/// Shared by the streams of agents, the duty loop and the services. Cheap to clone.
#[derive(Clone)]
pub struct Leader {
    shared: Arc<Shared>,
}

struct Shared {
    handle: CoordinatorHandle,
    policy: Policy,
    agents: Mutex<Agents>,
    requests: Requests,
    clock: Clock,
}

impl Leader {
    /// Starts the duties on the current runtime. `effects` comes from the node; the tasks end with the node.
    pub fn start(
        handle: CoordinatorHandle,
        policy: Policy,
        clock: Clock,
        effects: mpsc::Receiver<Vec<Effect>>,
    ) -> Self {
        let leader = Self {
            shared: Arc::new(Shared { handle, policy, agents: Mutex::default(), requests: Requests::default(), clock }),
        };
        tokio::spawn(duties::run(leader.clone()));
        tokio::spawn(duties::watch_the_clock(leader.clone()));
        tokio::spawn(tell(leader.clone(), effects));
        leader
    }

    pub fn effects_channel() -> (mpsc::Sender<Vec<Effect>>, mpsc::Receiver<Vec<Effect>>) {
        mpsc::channel(EFFECTS)
    }

    /// On the node's clock.
    pub fn now(&self) -> Millis {
        self.shared.clock.now()
    }

    pub fn handle(&self) -> &CoordinatorHandle {
        &self.shared.handle
    }

    pub fn policy(&self) -> Policy {
        self.shared.policy
    }

    /// Locked for moments only, and always after the state where both are needed.
    pub fn agents(&self) -> MutexGuard<'_, Agents> {
        self.shared.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    pub async fn read_log(&self, worker: &WorkerId, question: v1::ReadLog) -> Result<v1::LogData, RequestError> {
        let outgoing = self.agents().outgoing(worker);
        self.shared.requests.read_log(worker, outgoing, question).await
    }

    pub async fn ask(&self, worker: &WorkerId, question: v1::Ask) -> Result<v1::Answer, RequestError> {
        let outgoing = self.agents().outgoing(worker);
        self.shared.requests.ask(worker, outgoing, question).await
    }

    pub fn progress(&self, job: &JobId) -> Option<Progress> {
        self.agents().liveness.progress.get(job).cloned()
    }

    /// All workers, as operators see them.
    pub fn workers(&self) -> Vec<v1::Worker> {
        self.shared.handle.peek(|state| view::workers(state, &self.agents().liveness, self.now()))
    }

    /// Everything that an agent should be told now and was not told lately.
    fn due_orders(&self, worker: &WorkerId) -> Vec<Order> {
        let alive = self.agents().alive(worker);
        let wanted = self.shared.handle.peek(|state| orders::reconcile(state, worker, &alive));
        self.agents().due(worker, wanted, self.now())
    }

    fn told(&self, worker: &WorkerId, order: Order) -> Option<(Outgoing, Order)> {
        let mut agents = self.agents();
        let order = agents.due(worker, vec![order], self.now()).pop()?;
        Some((agents.outgoing(worker)?, order))
    }
}

/// Orders that follow from an entry go out at once. All are told again by heartbeat, so a full queue loses nothing.
async fn tell(leader: Leader, mut effects: mpsc::Receiver<Vec<Effect>>) {
    while let Some(round) = effects.recv().await {
        for effect in round {
            match effect {
                Effect::Send { worker, order } => {
                    let Some((outgoing, order)) = leader.told(&worker, order) else { continue };
                    tracing::debug!(%worker, %order, "order");
                    let _ = outgoing.try_send(Ok(convert::order_to_wire(&order)));
                }
                // The stream that brought the fact acknowledges it, and readers watch the view.
                Effect::Acknowledge { .. } | Effect::JobChanged { .. } => {}
            }
        }
    }
}
