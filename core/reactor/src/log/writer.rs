//! Writes the access log's file from a thread of its own, because a disk may take its time.
//!
//! The thread is started with the first lines, waits for more for a moment, and then ends: an idle process has none.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use crate::log::access::{Queue, Waiting, count};
use crate::log::sink::Sink;
use crate::sys::Errno;

/// How long the thread waits for more lines.
const LINGER: Duration = Duration::from_secs(1);

/// The state of the writer thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// There is none.
    None,
    /// It waits for lines.
    Idle,
    /// It has been woken, or writes; and so many lines.
    Busy { lines: u64 },
}

impl Writer {
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Writer::Busy { .. })
    }
}

/// Wakes or starts the writer thread. `false`: a thread cannot be started.
pub(crate) fn wake_writer(queue: &Arc<Queue>, waiting: &mut Waiting) -> bool {
    match waiting.writer {
        Writer::Busy { .. } => return true,
        Writer::Idle => queue.changed.notify_all(),
        Writer::None => {
            let queue = Arc::clone(queue);
            let thread = thread::Builder::new().name("poorhttp-log".to_owned());
            if thread.spawn(move || write_all(&queue)).is_err() {
                return false;
            }
        }
    }
    waiting.writer = Writer::Busy { lines: 0 };
    true
}

fn write_all(queue: &Queue) {
    let mut waiting = queue.lock();
    loop {
        if let Some((sink, lines)) = take(&mut waiting) {
            waiting.writer = Writer::Busy { lines: count(&lines) };
            drop(waiting);
            let result = write(&sink, &lines);
            // A replaced file is closed here, where no request waits for it.
            drop(sink);
            waiting = queue.lock();
            match result {
                Ok(()) if waiting.refused.is_some() => waiting.recover(),
                Ok(()) => {}
                Err((error, written)) => {
                    waiting.lose(count(&lines[written..]));
                    waiting.refuse(error);
                }
            }
            continue;
        }
        waiting.writer = Writer::Idle;
        queue.changed.notify_all();
        let is_idle = |waiting: &mut Waiting| waiting.writer == Writer::Idle;
        waiting = queue.changed.wait_timeout_while(waiting, LINGER, is_idle).unwrap_or_else(PoisonError::into_inner).0;
        if waiting.writer == Writer::Idle {
            waiting.writer = Writer::None;
            return;
        }
    }
}

/// The next lines, and where they go.
fn take(waiting: &mut Waiting) -> Option<(Arc<Sink>, Vec<u8>)> {
    if !waiting.replaced.is_empty() {
        return Some(waiting.replaced.remove(0));
    }
    // A sink that does not block is written to by the threads of the requests.
    let has_lines = !waiting.lines.is_empty() && waiting.sink.may_block();
    has_lines.then(|| (Arc::clone(&waiting.sink), std::mem::take(&mut waiting.lines)))
}

/// Writes all lines. The error has the number of bytes written before it.
fn write(sink: &Sink, lines: &[u8]) -> Result<(), (Errno, usize)> {
    let mut written = 0;
    while written < lines.len() {
        match sink.write_lines(&lines[written..], false) {
            Ok(bytes) => written += bytes,
            Err(error) => {
                sink.mark_torn();
                return Err((error, written));
            }
        }
    }
    Ok(())
}
