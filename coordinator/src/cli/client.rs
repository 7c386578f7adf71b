//! Calls to whichever coordinator leads: tries all addresses, follows leader hints, and tries again until a deadline.

use std::collections::HashMap;
use std::time::Duration;

use coord_proto::v1;
use coord_proto::v1::cluster_service_client::ClusterServiceClient;
use coord_proto::v1::job_service_client::JobServiceClient;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status, Streaming};

use super::address::Address;
use super::call_error::{CallError, judge};
use super::outage::Outage;

/// Largest answer that is accepted; the coordinator pages long before.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// A connection in use is probed this often, and given up when a probe has no answer for [`PROBE_LIMIT`].
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBE_LIMIT: Duration = Duration::from_secs(5);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Leader hints followed without a pause. Two nodes that name each other must not spin.
const HINTS_IN_A_ROW_MAX: u32 = 3;

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Over all tries.
    pub total: Duration,
    /// For one try: a node that hangs must leave time to ask another.
    pub one_try: Duration,
}

impl Patience {
    /// Reads and writes of the coordinator's state.
    pub const SHORT: Self = Self { total: Duration::from_secs(10), one_try: Duration::from_secs(4) };
    /// The long poll answers after 20 s at the latest; a change of leader may come in between.
    pub const LONG_POLL: Self = Self { total: Duration::from_secs(60), one_try: Duration::from_secs(30) };
    /// An answering process may have to load a large model first.
    pub const ANSWER: Self = Self { total: Duration::from_secs(300), one_try: Duration::from_secs(280) };
}

/// A client of the coordinator cluster.
#[derive(Debug)]
pub struct Client {
    addresses: Vec<Address>,
    /// Asked first: the one that answered last.
    preferred: Address,
    channels: HashMap<Address, Channel>,
    outage: Outage,
}

fn jobs(channel: Channel) -> JobServiceClient<Channel> {
    JobServiceClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX)
}

fn cluster(channel: Channel) -> ClusterServiceClient<Channel> {
    ClusterServiceClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX)
}

impl Client {
    /// Connects to nothing yet. `addresses` must not be empty.
    pub fn new(addresses: Vec<Address>) -> Self {
        let preferred = addresses.first().expect("the address list was checked when it was parsed").clone();
        Self { addresses, preferred, channels: HashMap::new(), outage: Outage::default() }
    }

    /// Who is told when no coordinator answers for some seconds, and when one answers again.
    pub fn tell_of_outages(&mut self, tell: impl Fn(&str) + 'static) {
        self.outage.tell_through(tell);
    }

    pub async fn submit(&mut self, request: v1::SubmitJobRequest) -> Result<v1::SubmitJobResponse, CallError> {
        self.call(Patience::SHORT, async |channel| jobs(channel).submit_job(request.clone()).await).await
    }

    pub async fn describe(&mut self, job: &str) -> Result<v1::Job, CallError> {
        let request = v1::DescribeJobRequest { job: job.to_owned() };
        let answer: v1::DescribeJobResponse =
            self.call(Patience::SHORT, async |channel| jobs(channel).describe_job(request.clone()).await).await?;
        Ok(answer.job.unwrap_or_default())
    }

    pub async fn list(&mut self, request: v1::ListJobsRequest) -> Result<v1::ListJobsResponse, CallError> {
        self.call(Patience::SHORT, async |channel| jobs(channel).list_jobs(request.clone()).await).await
    }

    pub async fn cancel(&mut self, job: &str) -> Result<v1::CancelJobResponse, CallError> {
        let request = v1::CancelJobRequest { job: job.to_owned() };
        self.call(Patience::SHORT, async |channel| jobs(channel).cancel_job(request.clone()).await).await
    }

    pub async fn delete(&mut self, job: &str) -> Result<(), CallError> {
        let request = v1::DeleteJobRequest { job: job.to_owned() };
        let (result, maybe_done): (Result<v1::DeleteJobResponse, _>, _) =
            self.call_noting(Patience::SHORT, async |channel| jobs(channel).delete_job(request.clone()).await).await;
        match result {
            Ok(_) => Ok(()),
            // Removed by an earlier try, whose answer was lost.
            Err(error) if error.is_not_found() && maybe_done => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Answers when the job differs from `version`; at once for version 0.
    pub async fn watch(&mut self, job: &str, version: u64) -> Result<v1::WatchJobResponse, CallError> {
        let request = v1::WatchJobRequest { job: job.to_owned(), version };
        self.call(Patience::LONG_POLL, async |channel| jobs(channel).watch_job(request.clone()).await).await
    }

    pub async fn explain(&mut self, job: &str) -> Result<v1::ExplainJobResponse, CallError> {
        let request = v1::ExplainJobRequest { job: job.to_owned() };
        self.call(Patience::SHORT, async |channel| jobs(channel).explain_job(request.clone()).await).await
    }

    pub async fn ask(&mut self, request: v1::AskJobRequest) -> Result<v1::AskJobResponse, CallError> {
        self.call(Patience::ANSWER, async |channel| jobs(channel).ask_job(request.clone()).await).await
    }

    /// Opens a stream of log lines. What breaks later is the reader's to mend, from its positions.
    pub async fn read_logs(
        &mut self,
        request: v1::ReadLogsRequest,
    ) -> Result<Streaming<v1::ReadLogsResponse>, CallError> {
        self.call(Patience::SHORT, async |channel| jobs(channel).read_logs(request.clone()).await).await
    }

    pub async fn workers(&mut self) -> Result<Vec<v1::Worker>, CallError> {
        let answer: v1::ListWorkersResponse = self
            .call(Patience::SHORT, async |channel| cluster(channel).list_workers(v1::ListWorkersRequest {}).await)
            .await?;
        Ok(answer.workers)
    }

    /// As the leader sees them, or, if none answers, as any node does.
    pub async fn members(&mut self) -> Result<v1::ListMembersResponse, CallError> {
        let answer = self.members_of(false).await?;
        if answer.leader == 0 || answer.leader == answer.node {
            return Ok(answer);
        }
        Ok(self.members_of(true).await.unwrap_or(answer))
    }

    async fn members_of(&mut self, of_leader: bool) -> Result<v1::ListMembersResponse, CallError> {
        let request = v1::ListMembersRequest { of_leader };
        self.call(Patience::SHORT, async |channel| cluster(channel).list_members(request).await).await
    }

    async fn call<T>(
        &mut self,
        patience: Patience,
        once: impl AsyncFn(Channel) -> Result<Response<T>, Status>,
    ) -> Result<T, CallError> {
        self.call_noting(patience, once).await.0
    }

    /// Tries until an answer, a refusal or the deadline. Every call of the services may be repeated: reads change
    /// nothing, writes carry an id or are idempotent. Also tells whether a try without an answer may have been
    /// carried out.
    async fn call_noting<T>(
        &mut self,
        patience: Patience,
        once: impl AsyncFn(Channel) -> Result<Response<T>, Status>,
    ) -> (Result<T, CallError>, bool) {
        let deadline = Instant::now() + patience.total;
        let mut pause = PAUSE_MIN;
        let mut hints_in_a_row = 0;
        let mut maybe_done = false;
        loop {
            let address = self.preferred.clone();
            let channel = self.channel(&address);
            let try_begins = Instant::now();
            let try_ends = deadline.min(try_begins + patience.one_try);
            let status = match tokio::time::timeout_at(try_ends, once(channel)).await {
                Ok(Ok(response)) => {
                    self.outage.over();
                    return (Ok(response.into_inner()), maybe_done);
                }
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded(format!("{address} does not answer")),
            };
            let setback = match judge(&status) {
                Ok(setback) => setback,
                Err(refusal) => {
                    self.outage.over();
                    return (Err(refusal), maybe_done);
                }
            };
            self.outage.goes_on(&setback.said, try_begins, Instant::now());
            maybe_done |= setback.maybe_done;
            // The next try opens a new connection: this one may be the reason.
            self.channels.remove(&address);
            let hinted = setback.leader.filter(|leader| *leader != address && hints_in_a_row < HINTS_IN_A_ROW_MAX);
            if let Some(leader) = hinted {
                self.preferred = leader;
                hints_in_a_row += 1;
                continue;
            }
            hints_in_a_row = 0;
            self.preferred = self.after(&address);
            if Instant::now() + pause >= deadline {
                let error = CallError::Unanswered {
                    addresses: self.addresses.iter().map(Address::as_str).collect::<Vec<_>>().join(", "),
                    limit: patience.total,
                    last: setback.said,
                    hint: setback.hint.or_else(|| Some(REACH_HINT.to_owned())),
                    maybe_done,
                };
                return (Err(error), maybe_done);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// The next address of the list; the first one after an address that was only hinted at.
    fn after(&self, address: &Address) -> Address {
        let next = self.addresses.iter().position(|known| known == address).map_or(0, |index| index + 1);
        self.addresses[next % self.addresses.len()].clone()
    }

    fn channel(&mut self, address: &Address) -> Channel {
        let open = |address: &Address| {
            Endpoint::from_shared(address.url())
                .expect("a parsed address makes a valid URL")
                .connect_timeout(CONNECT_LIMIT)
                .http2_keep_alive_interval(PROBE_INTERVAL)
                .keep_alive_timeout(PROBE_LIMIT)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true)
                .connect_lazy()
        };
        self.channels.entry(address.clone()).or_insert_with(|| open(address)).clone()
    }
}

const REACH_HINT: &str = "is `coord serve` running there? name its address with `--address` or COORD_ADDRESS";
