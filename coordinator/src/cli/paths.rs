//! Paths of this machine in a submit: made absolute, with a warning that other hosts may not see them.

use coord_io::storage::{StorageUrl, is_url};

use super::exit::Problem;

/// A URL, and whether it names a place on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub url: String,
    pub local: bool,
}

/// A URL as it is, a path as an absolute `file://` URL.
pub fn resolve(text: &str) -> Result<Resolved, Problem> {
    if is_url(text) {
        let url = StorageUrl::parse(text)?;
        return Ok(Resolved { local: url.scheme() == "file", url: url.as_str().to_owned() });
    }
    let path = lexically_clean(&std::path::absolute(text)?);
    let text = path.to_str().ok_or_else(|| Problem::usage(format!("path {path:?} is not UTF-8")))?;
    Ok(Resolved { url: StorageUrl::parse(text)?.as_str().to_owned(), local: true })
}

pub fn warning(what: &str, url: &str) -> String {
    format!("{what} {url} is on this machine: workers on other hosts see it only on a shared file system")
}

/// Warnings for program arguments of the form `./x`, `../x`, `--flag=./x` and `--flag=../x`. They reach the program
/// byte for byte all the same, in a directory on a worker where the path means something else.
pub fn relative_arguments(arguments: &[Vec<u8>]) -> Vec<String> {
    let relative = |argument: &&str| {
        let value = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => value,
            _ => argument,
        };
        value.starts_with("./") || value.starts_with("../")
    };
    let texts = arguments.iter().filter_map(|argument| std::str::from_utf8(argument).ok());
    let warn = |argument: &str| {
        let value = argument.split_once('=').map_or(argument, |(_, value)| value);
        let absolute = resolve(value).map_or_else(|_| "a whole URL".to_owned(), |resolved| resolved.url);
        format!("`{argument}` is relative, and the program starts in another directory on a worker: give {absolute}")
    };
    texts.filter(relative).map(warn).collect()
}

/// Resolves `.` and `..` by name alone, as a shell's `cd` does: the place need not exist yet.
fn lexically_clean(path: &std::path::Path) -> std::path::PathBuf {
    let mut clean = std::path::PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JOB-11, the submit side.
    #[test]
    fn a_relative_path_becomes_an_absolute_file_url_and_is_local() {
        let here = std::env::current_dir().expect("tests run in a directory");
        let resolved = resolve("./out/../run").expect("a path");
        assert_eq!(resolved, Resolved { url: format!("file://{}/run", here.display()), local: true });
        let bucket = resolve("s3://b/run/").expect("a URL");
        assert_eq!(bucket, Resolved { url: "s3://b/run".into(), local: false });
    }

    #[test]
    fn only_arguments_that_are_relative_paths_are_warned_about() {
        let here = std::env::current_dir().expect("tests run in a directory");
        let arguments: Vec<Vec<u8>> = [&b"--data=./a"[..], b"../b", b"--text=a./b", b"", b" x", b"\xff./", b".hidden"]
            .map(<[u8]>::to_vec)
            .to_vec();
        let warnings = relative_arguments(&arguments);
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with("`--data=./a` is relative"), "{}", warnings[0]);
        assert!(warnings[0].ends_with(&format!("give file://{}/a", here.display())), "{}", warnings[0]);
    }
}
