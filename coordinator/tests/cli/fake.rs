//! A coordinator node that answers from a script and notes what it was asked.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use coord_proto::v1;
use coord_proto::v1::job_service_server::{JobService, JobServiceServer};
use prost::Message;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};

type Answers<T> = Mutex<VecDeque<Result<T, Status>>>;
type LogStream = Pin<Box<dyn Stream<Item = Result<v1::ReadLogsResponse, Status>> + Send>>;

/// One node. Each call takes the next answer of its queue; an empty queue is an error that nobody retries.
#[derive(Default)]
pub struct Node {
    pub submits: Mutex<Vec<v1::SubmitJobRequest>>,
    pub submit_answers: Answers<v1::SubmitJobResponse>,
    pub describe_answers: Answers<v1::DescribeJobResponse>,
    pub lists: Mutex<Vec<v1::ListJobsRequest>>,
    pub list_answers: Answers<v1::ListJobsResponse>,
    pub cancel_answers: Answers<v1::CancelJobResponse>,
    pub deletes: Mutex<Vec<v1::DeleteJobRequest>>,
    pub delete_answers: Answers<v1::DeleteJobResponse>,
    pub watch_answers: Answers<v1::WatchJobResponse>,
    pub log_reads: Mutex<Vec<v1::ReadLogsRequest>>,
    /// The messages of each stream. A stream stays open after its last message if `hang` is set.
    pub log_streams: Mutex<VecDeque<Vec<Result<v1::ReadLogsResponse, Status>>>>,
    pub hang: bool,
    pub explain_answers: Answers<v1::ExplainJobResponse>,
    pub asks: Mutex<Vec<v1::AskJobRequest>>,
    pub ask_answers: Answers<v1::AskJobResponse>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test panics while it holds a lock")
}

impl Node {
    /// Serves on a free port until the test ends; gives the address.
    pub async fn serve(self: &Arc<Self>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address").to_string();
        let service = JobServiceServer::from_arc(self.clone());
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)));
        address
    }
}

/// An error as a coordinator sends it.
pub fn refusal(grpc: Code, code: &str, message: &str, leader: &str) -> Status {
    let detail = v1::ErrorDetail {
        code: code.to_owned(),
        hint: String::new(),
        retryable: grpc == Code::Unavailable,
        leader: leader.to_owned(),
    };
    let mut metadata = MetadataMap::new();
    metadata.insert_bin("coord-error-bin", MetadataValue::from_bytes(&detail.encode_to_vec()));
    Status::with_metadata(grpc, message, metadata)
}

fn next<T>(answers: &Answers<T>) -> Result<Response<T>, Status> {
    lock(answers)
        .pop_front()
        .unwrap_or_else(|| Err(Status::internal("the script has no more answers")))
        .map(Response::new)
}

#[tonic::async_trait]
impl JobService for Node {
    async fn submit_job(
        &self,
        request: Request<v1::SubmitJobRequest>,
    ) -> Result<Response<v1::SubmitJobResponse>, Status> {
        lock(&self.submits).push(request.into_inner());
        next(&self.submit_answers)
    }

    async fn describe_job(
        &self,
        _: Request<v1::DescribeJobRequest>,
    ) -> Result<Response<v1::DescribeJobResponse>, Status> {
        next(&self.describe_answers)
    }

    async fn list_jobs(&self, request: Request<v1::ListJobsRequest>) -> Result<Response<v1::ListJobsResponse>, Status> {
        lock(&self.lists).push(request.into_inner());
        next(&self.list_answers)
    }

    async fn cancel_job(&self, _: Request<v1::CancelJobRequest>) -> Result<Response<v1::CancelJobResponse>, Status> {
        next(&self.cancel_answers)
    }

    async fn delete_job(
        &self,
        request: Request<v1::DeleteJobRequest>,
    ) -> Result<Response<v1::DeleteJobResponse>, Status> {
        lock(&self.deletes).push(request.into_inner());
        next(&self.delete_answers)
    }

    async fn watch_job(&self, _: Request<v1::WatchJobRequest>) -> Result<Response<v1::WatchJobResponse>, Status> {
        next(&self.watch_answers)
    }

    type ReadLogsStream = LogStream;

    async fn read_logs(&self, request: Request<v1::ReadLogsRequest>) -> Result<Response<LogStream>, Status> {
        lock(&self.log_reads).push(request.into_inner());
        let messages = lock(&self.log_streams).pop_front();
        let messages = messages.ok_or_else(|| Status::internal("the script has no more streams"))?;
        let said = tokio_stream::iter(messages);
        let stream: LogStream = if self.hang { Box::pin(said.chain(tokio_stream::pending())) } else { Box::pin(said) };
        Ok(Response::new(stream))
    }

    async fn explain_job(&self, _: Request<v1::ExplainJobRequest>) -> Result<Response<v1::ExplainJobResponse>, Status> {
        next(&self.explain_answers)
    }

    async fn ask_job(&self, request: Request<v1::AskJobRequest>) -> Result<Response<v1::AskJobResponse>, Status> {
        lock(&self.asks).push(request.into_inner());
        next(&self.ask_answers)
    }
}
