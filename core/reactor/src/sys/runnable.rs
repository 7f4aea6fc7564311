//! Counts threads of this process that run or wait for a processor (proc_pid_stat(5)), without allocating memory.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io;

use super::process::thread_id;

/// Bytes of a thread's `stat` that are read: its ID, its name of 15 characters, of which each may be escaped, and its state.
const BEGINNING: usize = 128;

/// How many threads of this process but the one that asks run or wait for a processor, up to `most`. None: `/proc` does not say.
pub(crate) fn other_runnable_threads(most: usize) -> Option<usize> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = openat(CWD, c"/proc/self/task", flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let (mut entries, mut own) = ([MaybeUninit::uninit(); 2048], itoa::Buffer::new());
    let (mut entries, own) = (RawDir::new(&folder, &mut entries), own.format(thread_id()).as_bytes());
    let mut count = 0;
    while let Some(entry) = entries.next()
        && count < most
    {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if name == own || !name.first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let mut path = [0; 32];
        let Some(start) = path.get_mut(..name.len() + "/stat".len()) else { continue };
        start[..name.len()].copy_from_slice(name);
        start[name.len()..].copy_from_slice(b"/stat");
        let Ok(path) = CStr::from_bytes_until_nul(&path) else { continue };
        // A thread may have ended since.
        let Ok(file) = openat(&folder, path, flags, Mode::empty()) else { continue };
        let mut text = [0; BEGINNING];
        let length = io::read(&file, &mut text).unwrap_or(0);
        count += usize::from(is_runnable(&text[..length]));
    }
    Some(count)
}

/// Whether a thread with such a `stat` runs or waits for a processor. Its name, in parentheses, may contain anything.
fn is_runnable(stat: &[u8]) -> bool {
    stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2)) == Some(&b'R')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn the_name_may_contain_anything() {
        assert!(is_runnable(b"7 (a) S) R 1 7"));
        assert!(!is_runnable(b"7 (a) R) S 1 7"));
        assert!(!is_runnable(b"7 (a"));
    }

    #[test]
    fn threads_that_compute_count() {
        let (sender, receiver) = mpsc::channel::<()>();
        let computes = thread::spawn(move || while receiver.try_recv() == Err(mpsc::TryRecvError::Empty) {});
        assert_eq!(other_runnable_threads(1), Some(1));
        drop(sender);
        assert!(computes.join().is_ok());
    }
}
