//! What the agent's flags mean.

use std::net::SocketAddr;
use std::path::PathBuf;

use coord_common::time::Millis;

#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Addresses of coordinator nodes.
    pub coordinators: Vec<String>,
    pub slots: u32,
    /// Threads of each replica that does not ask for a number.
    pub threads_per_slot: u32,
    pub work_dir: PathBuf,
    pub http: Option<SocketAddr>,
    /// A replica that says nothing for so long is ended.
    pub replica_silence: Millis,
    /// Address that other hosts reach replicas under.
    pub host: String,
}
