//! What operators ask: workers and members.

use coord_proto::v1::cluster_service_server::ClusterService;
use coord_proto::v1::{ListMembersRequest, ListMembersResponse, ListWorkersRequest, ListWorkersResponse, Member};
use tonic::{Request, Response, Status};

use crate::handle::CoordinatorHandle;
use crate::leader::Leader;
use crate::raft::contacts::is_reachable;
use crate::raft::driver;

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

    async fn list_members(
        &self,
        request: Request<ListMembersRequest>,
    ) -> Result<Response<ListMembersResponse>, Status> {
        if request.into_inner().of_leader {
            self.handle.require_lead()?;
        }
        let raft = self.handle.view().raft;
        let members = self.handle.members().iter().map(|(node, address)| self.member(&raft, node, address)).collect();
        Ok(Response::new(ListMembersResponse {
            members,
            node: raft.node,
            leader: raft.leader,
            term: raft.term,
            applied: raft.applied,
        }))
    }
}

impl Cluster {
    fn member(&self, raft: &driver::Status, node: u64, address: &str) -> Member {
        let silence = self.handle.contacts().silence_of(node).filter(|_| node != raft.node);
        let state = if node == raft.leader {
            "leader"
        } else if node == raft.node {
            "follower"
        } else if !raft.leads {
            // Followers speak to the leader only.
            "unknown"
        } else if is_reachable(silence) {
            "follower"
        } else {
            "unreachable"
        };
        Member {
            node,
            address: address.to_owned(),
            voter: true,
            state: state.to_owned(),
            last_heard_millis: silence.map(|silence| silence.as_millis() as u64),
        }
    }
}
