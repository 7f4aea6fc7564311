//! Cache of a request head that a client repeats, with the environ built from it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::MAX_CACHED_HEADS;

/// What was made of a head that the client of a connection repeats.
#[derive(Debug)]
pub(crate) struct CachedHead {
    /// What the embedding made of it.
    pub(crate) made: Option<Box<dyn Any + Send + Sync>>,
    /// Number of cached heads of the reactor.
    count: Arc<AtomicUsize>,
}

impl CachedHead {
    /// `None`: the reactor has [`MAX_CACHED_HEADS`] already.
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Option<Self> {
        if count.fetch_add(1, Ordering::Relaxed) >= MAX_CACHED_HEADS {
            count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(CachedHead { made: None, count: Arc::clone(count) })
    }
}

impl Drop for CachedHead {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
