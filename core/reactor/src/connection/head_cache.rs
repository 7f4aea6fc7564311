//! Heads that repeat themselves: when one is remembered, and what was made of it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::connection::Connection;
use crate::limits::{MOST_MEMORIES, MOST_SURPRISES};

/// What is remembered of a connection whose client asks for the same thing again and again.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What the embedding made of the remembered head.
    pub(crate) made: Option<Box<dyn Any + Send + Sync>>,
    /// Counts all memories of a reactor.
    count: Arc<AtomicUsize>,
}

impl Memory {
    /// `None`: there are `most` memories already.
    fn new(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        if count.fetch_add(1, Ordering::Relaxed) >= most {
            count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Memory { made: None, count: Arc::clone(count) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    /// Remembers a head if its client has shown that it asks more than once, and does not surprise us too often.
    #[inline]
    pub(crate) fn consider_remembering(&mut self, memories: &Arc<AtomicUsize>) -> bool {
        let Some(work) = &self.work else { return false };
        if work.intake.repeated || self.served == 0 || self.surprises > MOST_SURPRISES {
            return false;
        }
        self.surprises += 1;
        self.memory = self.memory.take().or_else(|| Memory::new(memories, MOST_MEMORIES));
        let Some(memory) = &mut self.memory else { return false };
        memory.made = None;
        let remembers = self.inbound.remember(&work.intake);
        self.remember_origin();
        remembers
    }
}
