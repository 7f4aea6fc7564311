//! Whether there is memory left: for cgroups with a limit (cgroups(7), versions 1 and 2), and in the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// The share of the memory that may be in use.
const SHARE: f64 = 0.9;

/// The folders of the cgroups that limit the memory of this process, each with its bytes.
#[derive(Debug)]
pub(crate) struct MemoryLimits(pub(crate) Vec<(PathBuf, u64)>);

impl MemoryLimits {
    /// Whether less than [`SHARE`] is in use, without files that were read and can be read again.
    pub(crate) fn leave_room(&self) -> bool {
        let machine = Path::new("/proc/meminfo");
        let available = line(machine, "MemAvailable:").zip(line(machine, "MemTotal:"));
        available.is_none_or(|(available, total)| available as f64 >= total as f64 * (1.0 - SHARE))
            && self.0.iter().all(|(folder, limit)| is_free(folder, *limit).unwrap_or(true))
    }
}

/// Whether there is memory left in a cgroup. None: it does not say.
fn is_free(folder: &Path, limit: u64) -> Option<bool> {
    let current = number(&folder.join("memory.current")).or_else(|| number(&folder.join("memory.usage_in_bytes")))?;
    let stat = folder.join("memory.stat");
    // In version 1, the line without `total_` leaves out the cgroups below.
    let files = line(&stat, "total_inactive_file ").or_else(|| line(&stat, "inactive_file ")).unwrap_or(0);
    Some(current.saturating_sub(files) as f64 <= limit as f64 * SHARE)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_can_be_read_again_do_not_count() {
        for (current, stat, expected) in [
            ("memory.current", "anon 1\ninactive_file 200\n", true),
            ("memory.current", "inactive_file 50\n", false),
            ("memory.usage_in_bytes", "inactive_file 0\ntotal_inactive_file 200\n", true),
            ("memory.usage_in_bytes", "inactive_file 200\ntotal_inactive_file 50\n", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(current), "1000\n").unwrap();
            fs::write(folder.path().join("memory.stat"), stat).unwrap();
            assert_eq!(is_free(folder.path(), 1_000), Some(expected), "{current} {stat}");
        }
        assert_eq!(is_free(Path::new("/nonexistent"), 1_000), None);
    }
}
