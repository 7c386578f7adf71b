//! What operators ask: workers and members.

use coord_proto::v1::cluster_service_server::ClusterService;
use coord_proto::v1::{ListMembersRequest, ListMembersResponse, ListWorkersRequest, ListWorkersResponse, Member};
use tonic::{Request, Response, Status};

use crate::handle::CoordinatorHandle;
use crate::leader::Leader;

pub struct Cluster {
    pub handle: CoordinatorHandle,
    pub leader: Leader,
}

#[tonic::async_trait]
impl ClusterService for Cluster {
    async fn list_workers(&self, _: Request<ListWorkersRequest>) -> Result<Response<ListWorkersResponse>, Status> {
        self.handle.barrier().await?;
        Ok(Response::new(ListWorkersResponse { workers: self.leader.workers() }))
    }

    async fn list_members(&self, _: Request<ListMembersRequest>) -> Result<Response<ListMembersResponse>, Status> {
        let raft = self.handle.view().raft;
        let members = self
            .handle
            .members()
            .iter()
            .map(|(node, address)| Member { node, address: address.to_owned(), voter: true })
            .collect();
        Ok(Response::new(ListMembersResponse {
            members,
            node: raft.node,
            leader: raft.leader,
            term: raft.term,
            applied: raft.applied,
        }))
    }
}
