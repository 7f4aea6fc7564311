//! Heads that repeat themselves: when one is remembered, and what was made of it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::connection::Connection;
use crate::limits::{MAX_CACHE_MISSES, MAX_CACHED_HEADS};

/// What is remembered of a connection whose client asks for the same thing again and again.
#[derive(Debug)]
pub(crate) struct CachedHead {
    /// What the embedding made of the remembered head.
    pub(crate) made: Option<Box<dyn Any + Send + Sync>>,
    /// Counts all memories of a reactor.
    count: Arc<AtomicUsize>,
}

impl CachedHead {
    /// `None`: there are `most` memories already.
    fn new(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        if count.fetch_add(1, Ordering::Relaxed) >= most {
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

impl Connection {
    /// Remembers a head if its client has shown that it asks more than once, and does not surprise us too often.
    #[inline]
    pub(crate) fn cache_head(&mut self, cached_heads: &Arc<AtomicUsize>) -> bool {
        let Some(buffers) = &self.buffers else { return false };
        if buffers.read_buffer.repeated || self.served == 0 || self.cache_misses > MAX_CACHE_MISSES {
            return false;
        }
        self.cache_misses += 1;
        self.cached_head = self.cached_head.take().or_else(|| CachedHead::new(cached_heads, MAX_CACHED_HEADS));
        let Some(cached_head) = &mut self.cached_head else { return false };
        cached_head.made = None;
        let caches_head = self.parser.remember(&buffers.read_buffer);
        self.cache_origin();
        caches_head
    }
}
