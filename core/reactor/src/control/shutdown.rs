//! The requested stage of a shutdown.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

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

    /// New clients should go elsewhere from now on.
    pub(crate) fn set_unready(&self) {
        self.unready.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_unready(&self) -> bool {
        self.unready.load(Ordering::Relaxed)
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
