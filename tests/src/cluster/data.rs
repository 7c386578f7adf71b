//! Training data and program flags of a model that trains in seconds.

use std::path::Path;

use super::process::clean_command;
use super::tools::binary;

/// Dialogues of the repository as training pairs, in a folder or bucket.
#[derive(Debug, Clone)]
pub struct Dialogues {
    folder: String,
}

impl Dialogues {
    pub fn make(folder: &Path) -> Self {
        let lines = concat!(env!("CARGO_MANIFEST_DIR"), "/../worker/assets/self-dialogue/movie_lines.txt");
        let output = clean_command(binary("coord-worker")).arg("dialogs").arg(lines).arg(folder).output();
        let output = output.expect("coord-worker can be started");
        assert!(output.status.success(), "dialogues: {}", String::from_utf8_lossy(&output.stderr));
        Self { folder: folder.display().to_string() }
    }

    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Program flags of a small model that reads these dialogues: `steps` steps, a checkpoint every 20.
    pub fn flags(&self, steps: u64) -> Vec<String> {
        let file = |flag: &str, name: &str| format!("--{flag}={}/{name}", self.folder);
        let mut flags = vec![
            file("from_train_data", "train.a"),
            file("to_train_data", "train.b"),
            file("from_dev_data", "test.a"),
            file("to_dev_data", "test.b"),
        ];
        let model = "--size=32 --num_layers=1 --from_vocab_size=500 --to_vocab_size=500 --eval_pairs=8 --num_samples=64 \
            --batch_size=32 --steps_per_checkpoint=20";
        flags.extend(model.split_whitespace().map(str::to_owned));
        flags.push(format!("--steps={steps}"));
        flags
    }
}
