//! Stages of a shutdown (running, graceful, quick): the requested one and the one in effect.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::log::error::{ErrorLog, Level};
use crate::sys::clock::{self, NEVER};

/// Stages of a shutdown, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The server runs.
    #[default]
    Running,
    /// Requests that have begun are answered, those that are still received too.
    Graceful,
    /// Requests that are being answered are answered.
    Quick,
}

/// The requested stage; it never goes back.
#[derive(Debug, Default)]
pub(crate) struct ShutdownState {
    stage: AtomicU8,
    /// Idle connections are passed to the successor.
    passes_connections: AtomicBool,
    /// This process becomes the preloader.
    promoted: AtomicBool,
    /// `PREFIX/ready` answers 503.
    unready: AtomicBool,
}

impl ShutdownState {
    /// Goes on to a stage, and returns the one before; a stage that has passed changes nothing.
    pub(crate) fn request(&self, stage: Stage) -> Stage {
        Self::of(self.stage.fetch_max(stage as u8, Ordering::AcqRel))
    }

    #[inline]
    pub(crate) fn stage(&self) -> Stage {
        Self::of(self.stage.load(Ordering::Acquire))
    }

    #[inline]
    fn of(stage: u8) -> Stage {
        match stage {
            0 => Stage::Running,
            1 => Stage::Graceful,
            _ => Stage::Quick,
        }
    }

    /// Idle connections are given to a successor, if there may be one.
    pub(crate) fn request_handoff(&self, possible: bool) {
        self.passes_connections.store(possible, Ordering::Release);
    }

    #[inline]
    pub(crate) fn passes_connections(&self) -> bool {
        self.passes_connections.load(Ordering::Acquire)
    }

    /// This process becomes the preloader when it has finished.
    pub(crate) fn promote(&self) {
        self.promoted.store(true, Ordering::Release);
    }

    pub(crate) fn is_promoted(&self) -> bool {
        self.promoted.load(Ordering::Acquire)
    }

    /// Sets whether health checks report the server as ready, or that new clients should go elsewhere.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.unready.store(!ready, Ordering::Relaxed);
    }

    pub(crate) fn is_unready(&self) -> bool {
        self.unready.load(Ordering::Relaxed)
    }
}

/// Milliseconds between checks of connections that are open when the time to stop is over.
const FORCED_CLOSE_INTERVAL: u64 = 100;

/// The stage of a shutdown that has been acted upon, and until when it may take.
#[derive(Debug)]
pub(crate) struct Stopping {
    stage: Stage,
    /// When the last connection must have ended.
    force_close_at: u64,
    /// The reactor ends although requests are in flight.
    gives_up: bool,
}

impl Default for Stopping {
    fn default() -> Self {
        Stopping { stage: Stage::Running, force_close_at: NEVER, gives_up: false }
    }
}

impl Stopping {
    /// Acts upon a stage, in which all connections must have ended by `force_close_at` at the latest.
    pub(crate) fn enter(&mut self, stage: Stage, force_close_at: u64) {
        self.stage = stage;
        self.force_close_at = self.force_close_at.min(force_close_at);
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Does not wait for requests in flight any more.
    pub(crate) fn give_up(&mut self) {
        self.gives_up = true;
    }

    pub(crate) fn has_given_up(&self) -> bool {
        self.gives_up
    }

    /// Whether the time to stop is over.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        self.force_close_at <= now
    }

    /// When open connections must be checked next. They may last longer than the time to stop, while a request is in flight.
    #[inline]
    pub(crate) fn next_check(&self) -> u64 {
        if self.force_close_at == NEVER {
            return NEVER;
        }
        match clock::now() {
            now if self.is_overdue(now) => now + FORCED_CLOSE_INTERVAL,
            _ => self.force_close_at,
        }
    }
}

/// Logs how many connections were shut down because the time to stop is over.
pub(crate) fn log_cut_off(error_log: &ErrorLog, shut: usize) {
    if shut > 0 {
        let plural = if shut == 1 { "connection was" } else { "connections were" };
        error_log.write(Level::Info, &format!("graceful_timeout is over; {shut} {plural} shut down"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_shutdown_is_not_made_graceful_again() {
        let state = ShutdownState::default();
        assert_eq!(state.request(Stage::Quick), Stage::Running);
        assert_eq!(state.request(Stage::Graceful), Stage::Quick);
        assert_eq!(state.stage(), Stage::Quick);
    }
}
