//! The directory of a demonstration: data, storage, work directories and logs.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::super::exit::Problem;

/// Real dialogues, so that the model learns something one can talk to.
const DIALOGUES: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../worker/assets/self-dialogue/movie_lines.txt"));
/// Origin and licence of the dialogues; it goes where they go.
const NOTICE: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../worker/assets/self-dialogue/NOTICE"));

pub struct Place {
    root: PathBuf,
}

impl Place {
    /// Takes an empty or new directory, or makes one among the temporary files.
    pub fn create(wanted: Option<&Path>) -> Result<Self, Problem> {
        let root = match wanted {
            Some(path) => std::path::absolute(path)?,
            None => std::env::temp_dir().join(format!("coord-demo-{}", &Uuid::new_v4().simple().to_string()[..8])),
        };
        let place = Self { root };
        let shown = place.root.display();
        if place.root.to_str().is_none() {
            return Err(Problem::usage(format!("directory {shown} is not UTF-8")));
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&place.root)
            .map_err(|error| Problem::usage(format!("cannot make directory {shown}: {error}")))?;
        if std::fs::read_dir(&place.root)?.next().is_some() {
            return Err(Problem::usage(format!("directory {shown} is not empty"))
                .hint("name a new directory: the demonstration begins from nothing"));
        }
        for folder in [place.dialogues(), place.logs()] {
            std::fs::create_dir(folder)?;
        }
        std::fs::write(place.movie_lines(), DIALOGUES)?;
        std::fs::write(place.dialogues().join("NOTICE"), NOTICE)?;
        Ok(place)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn dialogues(&self) -> PathBuf {
        self.root.join("dialogues")
    }

    pub fn movie_lines(&self) -> PathBuf {
        self.dialogues().join("movie_lines.txt")
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub fn coordinator(&self) -> PathBuf {
        self.root.join("coordinator")
    }

    pub fn worker(&self, number: usize) -> PathBuf {
        self.root.join(format!("worker-{number}"))
    }

    pub fn storage_url(&self) -> String {
        format!("file://{}/storage", self.root.display())
    }

    pub fn dialogue_url(&self, name: &str) -> String {
        format!("file://{}", self.dialogues().join(name).display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_new_or_empty_and_holds_the_dialogues_with_their_licence() {
        let folder = tempfile::tempdir().expect("a directory");
        let wanted = folder.path().join("demo");
        let place = Place::create(Some(&wanted)).expect("a new directory");
        assert!(std::fs::metadata(place.movie_lines()).expect("dialogues").len() > 100_000);
        let notice = std::fs::read_to_string(place.dialogues().join("NOTICE")).expect("notice");
        assert!(notice.contains("BSD 3-Clause"));
        let refused = Place::create(Some(&wanted)).err().expect("not empty any more");
        assert!(refused.to_string().ends_with("is not empty"), "{refused}");
    }
}
