//! What counts as the URL of an object or folder.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::StorageError;

/// A checked URL without a slash at its end. Plain paths become `file://` URLs against the current directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageUrl {
    text: String,
}

/// Schemes that can be opened.
pub const SCHEMES: [&str; 5] = ["file", "s3", "gs", "az", "memory"];

/// A plain path from the root. What stands before its last `..` has to exist, because a link may lead elsewhere.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let parts: Vec<Component> = path.components().collect();
    match parts.iter().rposition(|part| *part == Component::ParentDir) {
        Some(last) => Ok(parts[..=last]
            .iter()
            .collect::<PathBuf>()
            .canonicalize()?
            .join(parts[last + 1..].iter().collect::<PathBuf>())),
        None => Ok(path),
    }
}

/// True for `scheme://...`, false for a plain path.
pub fn is_url(text: &str) -> bool {
    text.contains("://")
}

impl StorageUrl {
    pub fn parse(text: &str) -> Result<Self, StorageError> {
        let invalid = |why: String| StorageError::InvalidUrl { url: text.to_owned(), why };
        if text.is_empty() {
            return Err(invalid("it is empty".to_owned()));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            let path = absolute(Path::new(text)).map_err(|error| invalid(error.to_string()))?;
            let path = path.to_str().ok_or_else(|| invalid("the path is not UTF-8".to_owned()))?;
            return Self::parse(&format!("file://{path}"));
        };
        if !SCHEMES.contains(&scheme) {
            return Err(invalid(format!("the scheme must be one of {}, got {scheme}", SCHEMES.join(", "))));
        }
        if rest.contains('@') && matches!(scheme, "s3" | "gs" | "az") && !rest.starts_with('/') {
            let host = rest.split('/').next().unwrap_or_default();
            if host.contains('@') {
                // Never echo what may be a secret.
                return Err(StorageError::InvalidUrl {
                    url: format!("{scheme}://(hidden)"),
                    why: "credentials do not belong in a URL; use the cloud's usual environment variables".to_owned(),
                });
            }
        }
        if scheme == "file" && !rest.starts_with('/') {
            return Err(invalid("a file URL has three slashes: file:///absolute/path".to_owned()));
        }
        if matches!(scheme, "s3" | "gs" | "az") && rest.split('/').next().is_none_or(str::is_empty) {
            return Err(invalid(format!("the bucket is missing: {scheme}://BUCKET/path")));
        }
        let mut clean = String::new();
        for (index, part) in rest.split('/').enumerate() {
            if part == "." || part == ".." {
                return Err(invalid(format!("a URL may not hold `{part}`; give a plain path or the whole URL")));
            }
            if index == 0 {
                clean.push_str(part);
            } else if !part.is_empty() {
                clean.push('/');
                clean.push_str(part);
            }
        }
        if scheme == "file" && clean.is_empty() {
            clean.push('/');
        }
        Ok(Self { text: format!("{scheme}://{clean}") })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn scheme(&self) -> &str {
        self.text.split("://").next().unwrap_or_default()
    }

    /// Bucket (empty for files) and key below it.
    pub fn bucket_and_key(&self) -> (&str, &str) {
        let rest = &self.text[self.scheme().len() + 3..];
        rest.split_once('/').unwrap_or((rest, ""))
    }

    /// The folder and the name of an object.
    pub fn split_name(&self) -> Result<(Self, String), StorageError> {
        let (bucket, key) = self.bucket_and_key();
        if key.is_empty() {
            return Err(StorageError::InvalidUrl { url: self.text.clone(), why: "it names no object".to_owned() });
        }
        let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
        let text = format!(
            "{}://{bucket}{}{folder}",
            self.scheme(),
            if folder.is_empty() && bucket.is_empty() {
                "/"
            } else if folder.is_empty() {
                ""
            } else {
                "/"
            }
        );
        Ok((Self { text }, name.to_owned()))
    }
}
