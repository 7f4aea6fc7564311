//! Heads that repeat themselves: when one is remembered, and what was made of it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::limits::{MOST_MEMORIES, MOST_SURPRISES};
use crate::reactor::Reactor;

/// What is remembered of a connection whose client asks for the same thing again and again.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What the embedding made of the remembered head.
    made: Option<Box<dyn Any + Send + Sync>>,
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

impl Reactor {
    /// Remembers a head if its client has shown that it asks more than once, and does not surprise us too often.
    #[inline]
    pub(crate) fn consider_remembering(&self, connection: &mut Connection) -> bool {
        let Some(work) = &connection.work else { return false };
        if work.intake.repeated || connection.served == 0 || connection.surprises > MOST_SURPRISES {
            return false;
        }
        connection.surprises += 1;
        connection.memory = connection.memory.take().or_else(|| Memory::new(&self.memories, MOST_MEMORIES));
        let Some(memory) = &mut connection.memory else { return false };
        memory.made = None;
        let remembers = connection.inbound.remember(&work.intake);
        connection.remember_origin();
        remembers
    }
}

impl Exchange {
    /// What was made of this very head by [`Exchange::remember`], if it is remembered.
    #[inline]
    pub fn remembered<T: 'static>(&self) -> Option<&T> {
        let connection = self.connection.as_ref()?;
        if !connection.work.as_ref()?.intake.repeated {
            return None;
        }
        connection.memory.as_ref()?.made.as_ref()?.downcast_ref()
    }

    /// Keeps what is made of this head for its repetitions, if the head is remembered; it is dropped with the
    /// connection. What is made may depend on the head, the peer, what proxies say by them, and the listener, and on
    /// nothing else.
    #[inline]
    pub fn remember<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> Option<T>) {
        if self.remembers
            && let Some(memory) = self.connection.as_mut().and_then(|connection| connection.memory.as_mut())
        {
            memory.made = make().map(|made| Box::new(made) as _);
        }
    }
}
