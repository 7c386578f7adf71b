//! Who belongs to the cluster: fixed when it begins; addresses may change.

use std::collections::BTreeMap;

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    pub node: u64,
    addresses: BTreeMap<u64, String>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum MembersError {
    #[error("member `{0}` is not of the form NUMBER=HOST:PORT")]
    Form(String),
    #[error("member {0} is named twice")]
    Twice(u64),
    #[error("node {node} is not among the members {members:?}")]
    NotAMember { node: u64, members: Vec<u64> },
    #[error("node numbers start at 1, got 0")]
    Zero,
}

impl Members {
    /// A cluster of one.
    pub fn alone(node: u64, address: String) -> Result<Self, MembersError> {
        if node == 0 {
            return Err(MembersError::Zero);
        }
        Ok(Self { node, addresses: BTreeMap::from([(node, address)]) })
    }

    /// From `1=host:port,2=host:port,...`.
    pub fn parse(node: u64, text: &str) -> Result<Self, MembersError> {
        let mut addresses = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let malformed = || MembersError::Form(part.to_owned());
            let (number, address) = part.split_once('=').ok_or_else(malformed)?;
            let number: u64 = number.trim().parse().map_err(|_| malformed())?;
            let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            if number == 0 {
                return Err(MembersError::Zero);
            }
            if port.is_none() {
                return Err(malformed());
            }
            if addresses.insert(number, address.trim().to_owned()).is_some() {
                return Err(MembersError::Twice(number));
            }
        }
        if !addresses.contains_key(&node) {
            return Err(MembersError::NotAMember { node, members: addresses.into_keys().collect() });
        }
        Ok(Self { node, addresses })
    }

    pub fn voters(&self) -> Vec<u64> {
        self.addresses.keys().copied().collect()
    }

    pub fn address(&self, member: u64) -> Option<&str> {
        self.addresses.get(&member).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        self.addresses.iter().map(|(member, address)| (*member, address.as_str()))
    }

    /// True if this node is the only member.
    pub fn are_alone(&self) -> bool {
        self.addresses.len() == 1
    }

    /// All but this node.
    pub fn peers(&self) -> impl Iterator<Item = (u64, &str)> {
        self.iter().filter(|(member, _)| *member != self.node)
    }
}
