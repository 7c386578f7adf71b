//! The comma list of coordinator addresses that `--address` takes.

use thiserror::Error;

/// Port of a coordinator whose address names none.
pub const DEFAULT_PORT: u16 = 7070;

/// `host:port` of a coordinator node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    authority: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddressError {
    #[error("an address must be HOST or HOST:PORT, got `{0}`")]
    Malformed(String),
    #[error("the list of addresses is empty")]
    Empty,
}

impl Address {
    /// Takes `host`, `host:port`, `[v6]:port`, each with or without `http://`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed(text.to_owned());
        let bare = text.trim().strip_prefix("http://").unwrap_or(text.trim());
        let bare = bare.strip_suffix('/').unwrap_or(bare);
        let with_port = match bare.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(None) => return Err(malformed()),
            Some(Some((_, ""))) => format!("{bare}:{DEFAULT_PORT}"),
            Some(Some(_)) => bare.to_owned(),
            None if bare.contains(':') => bare.to_owned(),
            None => format!("{bare}:{DEFAULT_PORT}"),
        };
        let (host, port) = with_port.rsplit_once(':').ok_or_else(malformed)?;
        let host_is_plain = !host.is_empty() && !host.contains(['/', '@', ' ', ',']);
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if !host_is_plain || (host.contains(':') && !bracketed) || port.parse::<u16>().is_err() {
            return Err(malformed());
        }
        Ok(Self { authority: with_port })
    }

    pub fn parse_list(text: &str) -> Result<Vec<Self>, AddressError> {
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        let addresses = parts.map(Self::parse).collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() { Err(AddressError::Empty) } else { Ok(addresses) }
    }

    pub fn as_str(&self) -> &str {
        &self.authority
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.authority)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_port_gets_the_default_one() {
        let parsed = |text| Address::parse(text).map(|address| address.authority);
        assert_eq!(parsed("127.0.0.1:8000"), Ok("127.0.0.1:8000".to_owned()));
        assert_eq!(parsed("coord-0.coord"), Ok("coord-0.coord:7070".to_owned()));
        assert_eq!(parsed("http://node/"), Ok("node:7070".to_owned()));
        assert_eq!(parsed("[::1]"), Ok("[::1]:7070".to_owned()));
        assert_eq!(parsed("[::1]:9"), Ok("[::1]:9".to_owned()));
    }

    #[test]
    fn a_list_may_hold_spaces_and_one_bad_entry_spoils_it() {
        assert_eq!(Address::parse_list("a:1, b:2,").map(|list| list.len()), Ok(2));
        assert_eq!(Address::parse_list(" , "), Err(AddressError::Empty));
        for bad in ["a:1,b:x", "https://a:1", "::1", "user@host", "[::1", "a:70000"] {
            assert!(matches!(Address::parse_list(bad), Err(AddressError::Malformed(_))), "{bad}");
        }
    }
}
