//! Whether there is memory left: for the cgroup of this process and those above it (cgroups(7), version 2), and in the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// The share of the memory that may be in use.
const SHARE: f64 = 0.9;

/// The folders of the cgroup of this process and of those above it, that have a limit.
#[derive(Debug)]
pub(crate) struct MemoryLimits(Vec<(PathBuf, u64)>);

impl MemoryLimits {
    /// Reads the limits.
    pub(crate) fn read() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let (top, mut limits) = (Path::new("/sys/fs/cgroup"), Vec::new());
        for folder in top.join(group).ancestors().take_while(|folder| folder.starts_with(top)) {
            // Without a limit it is `max`.
            if let Some(limit) = number(&folder.join("memory.max")) {
                limits.push((folder.to_owned(), limit));
            }
        }
        MemoryLimits(limits)
    }

    /// Whether less than [`SHARE`] is in use, without files that were read and can be read again.
    pub(crate) fn leave_room(&self) -> bool {
        let is_free = |folder: &Path, limit: u64| {
            let current = number(&folder.join("memory.current"))?;
            let files = line(&folder.join("memory.stat"), "inactive_file ").unwrap_or(0);
            Some(current.saturating_sub(files) as f64 <= limit as f64 * SHARE)
        };
        let machine = Path::new("/proc/meminfo");
        let available = line(machine, "MemAvailable:").zip(line(machine, "MemTotal:"));
        available.is_none_or(|(available, total)| available as f64 >= total as f64 * (1.0 - SHARE))
            && self.0.iter().all(|(folder, limit)| is_free(folder, *limit).unwrap_or(true))
    }
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The number in the line of a file that begins so.
fn line(file: &Path, beginning: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}
