//! On what a figure was measured.

use std::fs;

/// `Intel(R) Xeon(R) ..., 2 cores, 23 GiB`.
pub fn describe() -> String {
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| kibibytes(&text)).unwrap_or(0);
    format!("{model}, {cores} cores, {} GiB", memory >> 20)
}

/// Physical memory of a process, in MiB.
pub fn resident_mebibytes(process: u32) -> f64 {
    let text = field(&format!("/proc/{process}/status"), "VmRSS").expect("a running process");
    kibibytes(&text).expect("a size in kB") as f64 / 1024.0
}

/// The first `name: value` of a file in `/proc`.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.parse().ok()
}
