//! How much memory this process may still take, and whether the kernel has ended processes for want of it.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

const KIB: u64 = 1024;

/// The least of what the machine has free, swap included, what the limits of the control groups leave, and what the
/// limit of this process's address space (`ulimit -v`) leaves. Memory that holds cached files counts as free. Nothing
/// where nothing of it can be read.
pub fn available() -> Option<u64> {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| free(&text));
    let groups = Groups::own();
    let groups = groups.folders.iter().filter_map(|folder| groups.version.left_in(folder));
    machine.into_iter().chain(groups).chain(address_space()).min()
}

/// Processes that the kernel has killed for want of memory in the control group of this process and those below it.
pub fn kills() -> Option<u64> {
    let groups = Groups::own();
    groups.folders.first().and_then(|folder| groups.version.kills_in(folder))
}

/// Kills for want of memory that are not accounted for yet, in a counter that the kernel keeps for all processes of the
/// control group together: one kill explains one death.
#[derive(Debug, Default)]
pub struct Kills {
    accounted: Option<u64>,
}

impl Kills {
    pub const fn new() -> Self {
        Self { accounted: None }
    }

    /// Call before a process starts: what was killed before it is not its end.
    pub fn forget(&mut self, counted: Option<u64>) {
        self.accounted = self.accounted.max(counted);
    }

    /// Call when a process was ended by SIGKILL: whether the kernel did it.
    pub fn explain(&mut self, counted: Option<u64>) -> bool {
        let (Some(accounted), Some(counted)) = (self.accounted, counted) else { return false };
        let explained = counted > accounted;
        self.accounted = Some(accounted + u64::from(explained));
        explained
    }
}

/// MemAvailable and SwapFree of `/proc/meminfo`.
fn free(meminfo: &str) -> Option<u64> {
    let amount = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((amount("MemAvailable")? + amount("SwapFree").unwrap_or(0)) * KIB)
}

fn address_space() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let status = read_to_string("/proc/self/status").ok()?;
    let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let taken: u64 = taken.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(limit.saturating_sub(taken * KIB))
}

/// The two interfaces of the kernel (cgroups(7)).
#[derive(Debug, Clone, Copy, PartialEq)]
enum Version {
    One,
    Two,
}

/// The control group of this process, then those above it.
#[derive(Debug, PartialEq)]
struct Groups {
    version: Version,
    folders: Vec<PathBuf>,
}

impl Groups {
    fn own() -> Self {
        let text = read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(&text, Path::new("/sys/fs/cgroup"))
    }

    /// `text` as in `/proc/self/cgroup`. In a container the paths may be those of its host and not be there: its own
    /// group is then what is mounted.
    fn of(text: &str, mounted: &Path) -> Self {
        let path_in = |controller: &str| {
            text.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                controllers.split(',').any(|one| one == controller).then_some(path)
            })
        };
        let (version, root, path) = match path_in("memory") {
            Some(path) => (Version::One, mounted.join("memory"), path),
            None => (Version::Two, mounted.to_owned(), path_in("").unwrap_or("/")),
        };
        let own = root.join(path.trim_start_matches('/'));
        let folders = own.ancestors().take_while(|folder| folder.starts_with(&root));
        Self { version, folders: folders.filter(|folder| folder.is_dir()).map(Path::to_owned).collect() }
    }
}

impl Version {
    /// Nothing without a limit.
    fn left_in(self, folder: &Path) -> Option<u64> {
        let (limit, usage, cached) = match self {
            Self::One => {
                ("memory.limit_in_bytes", "memory.usage_in_bytes", ["total_inactive_file", "total_active_file"])
            }
            Self::Two => ("memory.max", "memory.current", ["inactive_file", "active_file"]),
        };
        let number = |file: &str| read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let statistics = read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cached: u64 = cached.iter().filter_map(|name| counter(&statistics, name)).sum();
        // No limit is written as `max`, or as the largest number of whole pages.
        let limit = number(limit).filter(|limit| *limit < i64::MAX as u64 / 2)?;
        Some(limit.saturating_sub(number(usage)?.saturating_sub(cached)))
    }

    fn kills_in(self, folder: &Path) -> Option<u64> {
        let file = match self {
            Self::One => "memory.oom_control",
            Self::Two => "memory.events",
        };
        counter(&read_to_string(folder.join(file)).ok()?, "oom_kill")
    }
}

/// The number after a name that begins a line.
fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    #[test]
    fn the_machine_s_free_memory_counts_swap() {
        let text = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:   30 kB\nSwapTotal: 9 kB\nSwapFree:  5 kB\n";
        assert_eq!(free(text), Some(35 * 1024));
        assert_eq!(free("MemTotal: 100 kB\n"), None);
    }

    #[test]
    fn the_tightest_group_above_a_process_decides_and_cached_files_count_as_free() {
        let mounted = tempfile::tempdir().unwrap();
        let inner = mounted.path().join("pods/one");
        create_dir_all(&inner).unwrap();
        write(inner.join("memory.max"), "max\n").unwrap();
        write(mounted.path().join("pods/memory.max"), "1000\n").unwrap();
        write(mounted.path().join("pods/memory.current"), "700\n").unwrap();
        write(mounted.path().join("pods/memory.stat"), "anon 500\ninactive_file 150\nactive_file 50\n").unwrap();
        write(inner.join("memory.events"), "oom 3\noom_kill 2\n").unwrap();
        let groups = Groups::of("0::/pods/one\n", mounted.path());
        assert_eq!(groups.version, Version::Two);
        let left: Vec<u64> = groups.folders.iter().filter_map(|folder| groups.version.left_in(folder)).collect();
        assert_eq!(left, [500]);
        assert_eq!(groups.version.kills_in(&groups.folders[0]), Some(2));
    }

    #[test]
    fn a_container_whose_host_names_its_group_finds_the_mounted_one() {
        let mounted = tempfile::tempdir().unwrap();
        let memory = mounted.path().join("memory");
        create_dir_all(&memory).unwrap();
        write(memory.join("memory.limit_in_bytes"), "4096\n").unwrap();
        write(memory.join("memory.usage_in_bytes"), "96\n").unwrap();
        write(memory.join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n").unwrap();
        let groups = Groups::of("4:memory:/kubepods/x\n0::/\n", mounted.path());
        assert_eq!(groups, Groups { version: Version::One, folders: vec![memory.clone()] });
        assert_eq!(groups.version.left_in(&memory), Some(4000));
        assert_eq!(groups.version.kills_in(&memory), Some(7));
        write(memory.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        assert_eq!(groups.version.left_in(&memory), None);
    }

    #[test]
    fn one_kill_of_the_kernel_explains_one_death() {
        let mut kills = Kills::default();
        assert!(!kills.explain(Some(5)), "nothing is known of the time before");
        kills.forget(Some(2));
        assert!(!kills.explain(Some(2)));
        assert!(kills.explain(Some(3)));
        assert!(!kills.explain(Some(3)), "somebody else's SIGKILL, after the kernel's");
        assert!(kills.explain(Some(5)) && kills.explain(Some(5)) && !kills.explain(Some(5)));
        kills.forget(Some(7));
        assert!(!kills.explain(Some(7)) && !kills.explain(None));
        kills.forget(None);
        assert!(kills.explain(Some(8)));
    }

    #[test]
    fn this_process_has_memory_left() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
