//! Runs the binary and compares what it prints with golden files.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What a run left behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub exit: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// `coord` in a folder of its own: what else was built does not lie beside it.
fn alone() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("alone");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let (coord, own) = (folder.join("coord"), folder.join(format!("coord-{}", std::process::id())));
    let _ = std::fs::remove_file(&own);
    // A link costs nothing, and other tests see the old or the new one, never none.
    std::fs::hard_link(env!("CARGO_BIN_EXE_coord"), &own).expect("the folder lies beside the binary");
    std::fs::rename(&own, &coord).expect("a link can be renamed");
    // Renaming a link over another one to the same file leaves both.
    let _ = std::fs::remove_file(&own);
    coord
}

/// A folder with `coord` and a worker binary that does what the shell script says; `--version` it answers by itself.
pub fn beside_a_worker(script: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let coord = folder.path().join("coord");
    std::fs::hard_link(env!("CARGO_BIN_EXE_coord"), &coord).expect("the folder lies beside the binary");
    let worker = folder.path().join("coord-worker");
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo coord-worker {version}; exit 0; fi\n\
         here=$(dirname \"$0\")\n{script}\n"
    );
    std::fs::write(&worker, text).expect("writable");
    std::fs::set_permissions(&worker, std::fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    (folder, coord)
}

pub fn command(address: &str) -> Command {
    command_of(&alone(), address)
}

fn command_of(coord: &Path, address: &str) -> Command {
    let mut command = Command::new(coord);
    command.env_clear().env("COORD_ADDRESS", address).env("TZ", "UTC").env("PATH", "").kill_on_drop(true);
    command
}

pub async fn coord(address: &str, arguments: &[impl AsRef<OsStr>]) -> Ran {
    coord_reading(address, arguments, b"").await
}

pub async fn coord_reading(address: &str, arguments: &[impl AsRef<OsStr>], input: &[u8]) -> Ran {
    run(command(address), arguments, input).await
}

/// Runs the binary of a folder made by [`beside_a_worker`].
pub async fn coord_of(coord: &Path, address: &str, arguments: &[impl AsRef<OsStr>]) -> Ran {
    let mut command = command_of(coord, address);
    // The scripts use a few programs.
    command.env("PATH", "/usr/bin:/bin");
    run(command, arguments, b"").await
}

async fn run(mut command: Command, arguments: &[impl AsRef<OsStr>], input: &[u8]) -> Ran {
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that reads no input may be gone before all is written.
    let _ = stdin.write_all(input).await;
    drop(stdin);
    let output = child.wait_with_output().await.expect("the binary ends");
    Ran {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Compares with `golden/NAME.txt`; `COORD_BLESS=1` writes the file instead, to be reviewed like code.
pub fn golden(name: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden").join(format!("{name}.txt"));
    if std::env::var_os("COORD_BLESS").is_some() {
        std::fs::write(&file, actual).expect("golden files can be written");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(actual, expected, "{} differs", file.display());
}
