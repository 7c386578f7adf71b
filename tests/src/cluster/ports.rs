//! Ports that stay a test's own while its processes are killed and started again.

use std::fs::File;
use std::net::TcpListener;
use std::ops::Range;
use std::path::PathBuf;

/// Below what operating systems hand out to outgoing connections: nothing else takes such a port between two starts
/// of a process, as could happen with one that was asked for as port 0 and let go.
const RANGE: Range<u16> = 20_000..30_000;

/// A port of the loopback address, reserved among all tests of this machine by a lock.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    pub fn reserve() -> Self {
        let folder = folder();
        // Tests start at different places, so that they seldom try the same port.
        let span = u32::from(RANGE.end - RANGE.start);
        let start = std::process::id().wrapping_mul(37) % span;
        for step in 0..span {
            let number = RANGE.start + u16::try_from((start + step) % span).expect("the range is of ports");
            let lock = File::create(folder.join(number.to_string())).expect("a lock file for a port");
            if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Self { number, _lock: lock };
            }
        }
        panic!("no free port in {RANGE:?}");
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join("coord-test-ports");
    std::fs::create_dir_all(&folder).expect("a directory for locks of ports");
    folder
}
