//! A replica's place in its generation, and the names that people see for it.

use std::fmt;

use crate::ids::{Generation, JobId};

/// From 0; rank 0 is the master replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rank(pub u32);

impl Rank {
    pub const MASTER: Rank = Rank(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// One start of one replica: what agents, replicas and the coordinator mean by "that one".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaKey {
    pub job: JobId,
    pub generation: Generation,
    pub rank: Rank,
}

impl fmt::Display for ReplicaKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.job, self.generation, self.rank)
    }
}

/// `master-replica-0`, `worker-replica-1`, ...: the number is the rank.
pub fn replica_name(rank: Rank) -> String {
    let role = if rank == Rank::MASTER { "master" } else { "worker" };
    format!("{role}-replica-{rank}")
}

/// The rank behind a replica name; nothing for other task names (`service`) and for a role that is not the rank's.
pub fn rank_of_name(name: &str) -> Option<Rank> {
    let (_, number) = name.rsplit_once('-')?;
    let rank = Rank(number.parse().ok()?);
    (replica_name(rank) == name).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_a_replica_name_is_its_rank() {
        assert_eq!(replica_name(Rank(0)), "master-replica-0");
        assert_eq!(replica_name(Rank(11)), "worker-replica-11");
        for rank in [Rank(0), Rank(1), Rank(4_000_000_000)] {
            assert_eq!(rank_of_name(&replica_name(rank)), Some(rank));
        }
        for name in ["service", "master-replica-1", "worker-replica-0", "worker-replica-01", "worker-replica-"] {
            assert_eq!(rank_of_name(name), None, "{name}");
        }
    }
}
