//! Runs the binary and compares what it prints with golden files.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What a run left behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub exit: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub fn command(address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coord"));
    command.env_clear().env("COORD_ADDRESS", address).env("TZ", "UTC").env("PATH", "").kill_on_drop(true);
    command
}

pub async fn coord(address: &str, arguments: &[impl AsRef<OsStr>]) -> Ran {
    coord_reading(address, arguments, b"").await
}

pub async fn coord_reading(address: &str, arguments: &[impl AsRef<OsStr>], input: &[u8]) -> Ran {
    let mut child = command(address)
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
