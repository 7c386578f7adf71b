//! What went wrong with an object: operation, URL, HTTP code and identity, never a secret.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum StorageError {
    #[error("bad storage URL {url}: {why}")]
    InvalidUrl { url: String, why: String },
    #[error("{operation} {url}: not found{}", code(*.status))]
    NotFound { operation: &'static str, url: String, status: Option<u16> },
    #[error("{operation} {url}: expected a file, got {kind}")]
    NotAFile { operation: &'static str, url: String, kind: &'static str },
    #[error("{operation} {url}: permission denied{} (as {identity})", code(*.status))]
    Denied { operation: &'static str, url: String, status: Option<u16>, identity: String },
    #[error("{operation} {url}: no valid credentials{} (as {identity})", code(*.status))]
    Unauthenticated { operation: &'static str, url: String, status: Option<u16>, identity: String },
    #[error("{operation} {url}: {text}{} (as {identity})", code(*.status))]
    Other { operation: &'static str, url: String, status: Option<u16>, identity: String, text: String },
}

fn code(status: Option<u16>) -> String {
    status.map(|status| format!(" (HTTP {status})")).unwrap_or_default()
}

impl StorageError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } => "storage_url",
            Self::NotFound { .. } => "storage_not_found",
            Self::NotAFile { .. } => "storage_not_a_file",
            Self::Denied { .. } => "storage_denied",
            Self::Unauthenticated { .. } => "storage_credentials",
            Self::Other { .. } => "storage",
        }
    }

    /// Worth another try later: the store or the way to it was unwell.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Other { status, .. } => status.is_none_or(|status| status == 429 || status >= 500),
            _ => false,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::InvalidUrl { .. } | Self::NotAFile { .. } => None,
            Self::NotFound { .. } => Some("check the bucket and the path; coord creates no buckets".to_owned()),
            Self::Denied { .. } => Some("give this identity the right to read, write and delete there".to_owned()),
            Self::Unauthenticated { .. } => {
                Some("set the cloud's usual credential variables for this process".to_owned())
            }
            Self::Other { .. } => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    pub(super) fn from_store(
        operation: &'static str,
        url: String,
        identity: &str,
        source: object_store::Error,
    ) -> Self {
        let chain = chain(&source);
        let status = status(&chain);
        let identity = identity.to_owned();
        match source {
            object_store::Error::NotFound { .. } => {
                let http = !url.starts_with("file://") && !url.starts_with("memory://");
                Self::NotFound { operation, url, status: status.or(http.then_some(404)) }
            }
            object_store::Error::PermissionDenied { .. } => {
                Self::Denied { operation, url, status: status.or(Some(403)), identity }
            }
            object_store::Error::Unauthenticated { .. } => {
                Self::Unauthenticated { operation, url, status: status.or(Some(401)), identity }
            }
            _ if chain.contains("Permission denied") || chain.contains("Read-only file system") => {
                Self::Denied { operation, url, status, identity }
            }
            _ if identity.starts_with("no ") => Self::Unauthenticated { operation, url, status, identity },
            _ => Self::Other { operation, url, status, identity, text: last(&chain) },
        }
    }
}

/// The texts of an error and all its sources, outermost first, one a line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push('\n');
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}

/// The innermost text says most; it is kept to one line of at most 300 characters. S3 answers in XML.
fn last(chain: &str) -> String {
    let line = chain.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("unknown error");
    let text = match (element(line, "Code"), element(line, "Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        _ => line.trim().to_owned(),
    };
    text.chars().take(300).collect()
}

fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// The store's library tells the HTTP status only in words ("status 503 Service Unavailable").
fn status(chain: &str) -> Option<u16> {
    chain
        .match_indices("status")
        .filter_map(|(start, word)| {
            let digits: String = chain[start + word.len()..]
                .chars()
                .skip_while(|letter| matches!(letter, ' ' | ':' | '='))
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse().ok().filter(|status| (100..600).contains(status))
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_xml_is_told_by_its_code_and_message() {
        let xml =
            "request failed\n<Error><Code>NoSuchBucket</Code><Message>It is not there</Message><Key>x</Key></Error>";
        assert_eq!(last(xml), "NoSuchBucket: It is not there");
        assert_eq!(last("outer\n inner \n"), "inner");
    }
}
