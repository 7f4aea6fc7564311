//! One client's connection: its socket, what was received and what is still to be sent.

use std::any::Any;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use poorhttp_http::{Inbound, Intake};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, connect_unspec, recv, send, sendmsg, shutdown};

use crate::body::Body;
use crate::deadlines::NEVER;
use crate::outlet::{Flushed, Outlet};
use crate::pace::{Demand, Pace};
use crate::slow::Answered;

/// Nothing can be sent any more.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The client is gone.
    Gone,
    /// We could not keep what it did not take yet, or the file that it was to get became shorter.
    Failed(io::Error),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Lost::Gone,
            _ => Lost::Failed(error),
        }
    }
}

/// What two threads may touch at once: the owner of the connection, and whoever finds the socket writable.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: OwnedFd,
    outlet: Mutex<Option<Outlet>>,
    /// Something waits in the outlet; read without its lock.
    waiting: AtomicBool,
}

impl Link {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Link { socket, outlet: Mutex::new(None), waiting: AtomicBool::new(false) }
    }

    pub(crate) fn outlet(&self) -> MutexGuard<'_, Option<Outlet>> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Sends what waits, as far as the socket takes it and others do not have to wait.
    pub(crate) fn flush(&self) -> Flushed {
        match &mut *self.outlet() {
            Some(outlet) => outlet.flush(self.socket.as_fd()),
            None => Flushed::Everything,
        }
    }

    /// When to ask for its [`Link::patience`].
    pub(crate) fn deadline(&self, demand: Demand) -> u64 {
        self.outlet().as_ref().map_or(NEVER, |outlet| outlet.deadline(demand))
    }

    /// Until when a reader for whom something waits may go on as it does; `None`: it has been too slow. To be asked once
    /// for each deadline: the next answer is about the time from here on.
    pub(crate) fn patience(&self, demand: Demand) -> Option<u64> {
        patience(&mut self.outlet(), demand)
    }

    /// The same for those who hold a lock that others need: whoever has the outlet may be writing to a slow disk, and then
    /// it is asked again after `later`.
    pub(crate) fn patience_without_waiting(&self, demand: Demand, later: u64) -> Option<u64> {
        match self.outlet.try_lock() {
            Ok(mut outlet) => patience(&mut outlet, demand),
            Err(TryLockError::Poisoned(outlet)) => patience(&mut outlet.into_inner(), demand),
            Err(TryLockError::WouldBlock) => Some(later),
        }
    }

    /// Cuts the connection off: whoever owns it learns of it with its next call.
    pub(crate) fn cut(&self) {
        if let Some(outlet) = &mut *self.outlet() {
            outlet.give_up();
        }
        self.forsake();
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Sends the last octets of this connection, from outside: behind what waits, or at once. There is room for them, because
    /// either nothing has been sent for the request that they answer, or they wait as well.
    #[cold]
    pub(crate) fn send_the_last(&self, bytes: &[u8]) {
        let all_sent = match &mut *self.outlet() {
            Some(outlet) => {
                let _ = outlet.push(bytes);
                outlet.flush(self.socket.as_fd()) == Flushed::Everything
            }
            None => {
                let _ = send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                true
            }
        };
        if all_sent {
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
    }

    /// Ends the connection so that nobody takes what was sent for a whole answer.
    #[cold]
    pub(crate) fn reset(&self) {
        if let Some(outlet) = &mut *self.outlet() {
            outlet.give_up();
        }
        self.forsake();
        // Whoever owns it will close it, but who knows when. A Unix socket has no resets.
        if connect_unspec(&self.socket).is_err() {
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }

    /// Lets the end of the connection be a reset. Otherwise the kernel would go on for many minutes with what it has
    /// accepted for a client that takes nothing, and that client would never learn of the end.
    pub(crate) fn forsake(&self) {
        let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
    }
}

fn patience(outlet: &mut Option<Outlet>, demand: Demand) -> Option<u64> {
    match outlet {
        Some(outlet) => (!outlet.is_too_slow(demand)).then(|| outlet.deadline(demand)),
        None => Some(NEVER),
    }
}

/// Buffers that a connection needs only while a message is in hand.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) intake: Intake,
    /// Answers that were not sent yet.
    pub(crate) out: Vec<u8>,
    pub(crate) body: Body,
    /// How fast the body comes.
    pub(crate) pace: Pace,
}

impl Work {
    /// Whether another connection may use it.
    pub(crate) fn is_idle(&self) -> bool {
        !self.intake.is_in_use() && self.out.is_empty() && self.body.length() == 0
    }

    /// Whether it has grown so much that it is not worth keeping.
    pub(crate) fn is_bulky(&self) -> bool {
        self.intake.capacity() > 2 * Intake::ROOM || self.out.capacity() > 64 << 10
    }
}

/// What happens when everything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next message is read.
    Next,
    /// The connection is closed; the client has nothing more to say.
    Close,
    /// We have finished, but the client may still be sending: it is heard out for a moment, so that a reset does not
    /// destroy our answer on its way (RFC 9112 section 9.6).
    Linger,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is no room for it; to be told so.
    Unwelcome,
    /// A message is awaited, received or answered.
    Serving,
    /// An answer waits for a slow reader.
    Draining(After),
    /// What still comes is dropped.
    Lingering,
}

/// A connection. Whoever holds the box is its only user.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) index: u32,
    pub(crate) generation: u32,
    pub(crate) link: Arc<Link>,
    pub(crate) phase: Phase,
    /// `recv` may have something for us.
    pub(crate) readable: bool,
    /// The peer has closed its side, so after the last octet there is an end to be read.
    pub(crate) hangup: bool,
    pub(crate) expired: bool,
    /// When what has begun must have ended, however slowly it goes on: a head, or the last moments of a connection. 0: nothing
    /// has begun.
    pub(crate) until: u64,
    /// The outlet is in use; spares its lock where it is not.
    pub(crate) has_outlet: bool,
    /// The socket may take more of the outlet, and no edge will say so.
    pub(crate) paused: bool,
    /// Requests answered so far.
    pub(crate) served: u32,
    /// The number of the last one of them.
    pub(crate) number: u64,
    /// Its client has sent a request before it had the answer to the one before.
    pub(crate) pipelines: bool,
    /// Requests answered since others last had their turn.
    pub(crate) burst: u32,
    /// Number of the listener that accepted it.
    pub(crate) listener: u32,
    pub(crate) inbound: Inbound,
    pub(crate) work: Option<Box<Work>>,
    /// Unknown for a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) memory: Option<Memory>,
    /// How often something else came than what was remembered.
    pub(crate) surprises: u8,
    /// The look at the poller that let it in, and since when there is something to be read; both for [`crate::slow`].
    pub(crate) came_in: u64,
    pub(crate) since: u64,
    /// Its last request, until the answer was sent, if anybody wants to know.
    pub(crate) answered: Option<Box<Answered>>,
}

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
    pub(crate) fn new(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
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

/// What `recv` had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Something,
    NothingYet,
    /// The peer will send nothing more, or the connection is broken.
    End,
}

impl Connection {
    pub(crate) fn new(index: u32, generation: u32, link: Arc<Link>, listener: u32, peer: Option<SocketAddr>) -> Self {
        Connection {
            index,
            generation,
            link,
            phase: Phase::Serving,
            readable: false,
            hangup: false,
            expired: false,
            until: 0,
            has_outlet: false,
            paused: false,
            served: 0,
            number: 0,
            pipelines: false,
            burst: 0,
            listener,
            inbound: Inbound::default(),
            work: None,
            peer,
            memory: None,
            surprises: 0,
            came_in: 0,
            since: 0,
            answered: None,
        }
    }

    pub(crate) fn work(&mut self) -> &mut Work {
        self.work.get_or_insert_default()
    }

    /// Reads once. A read that fills less than the room has emptied the socket: the next edge will tell of more.
    #[inline]
    pub(crate) fn receive(&mut self) -> Received {
        let expected = self.inbound.expected();
        let intake = &mut self.work.get_or_insert_default().intake;
        loop {
            let room = intake.room(expected);
            let length = room.len();
            match recv(&self.link.socket, room, RecvFlags::empty()) {
                Ok((_, 0)) => return Received::End,
                Ok((_, octets)) => {
                    self.readable = octets == length || self.hangup;
                    intake.received(octets);
                    return Received::Something;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    return Received::NothingYet;
                }
                Err(_) => return Received::End,
            }
        }
    }

    /// Reads and drops. `true`: the peer has finished as well.
    pub(crate) fn discard(&mut self) -> bool {
        let mut dropped = [0; 4096];
        // Bounded, so that one fast sender cannot occupy us.
        for _ in 0..64 {
            match recv(&self.link.socket, &mut dropped, RecvFlags::empty()) {
                Ok((_, 0)) => return true,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    return false;
                }
                Err(_) => return true,
            }
        }
        false
    }

    /// Sends the gathered answers and then `more`. What the socket does not take waits in the outlet.
    #[inline]
    pub(crate) fn transmit(&mut self, more: &[&[u8]]) -> Result<(), Lost> {
        let Some(work) = &mut self.work else { return Ok(()) };
        if !self.has_outlet {
            let total = work.out.len() + more.iter().map(|part| part.len()).sum::<usize>();
            if total == 0 {
                return Ok(());
            }
            let sent = loop {
                let sent = match more {
                    [] => send(&self.link.socket, &work.out, SendFlags::NOSIGNAL),
                    _ => send_vectored(&self.link.socket, &work.out, more),
                };
                match sent {
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break 0,
                    Err(_) => return Err(Lost::Gone),
                    Ok(octets) => break octets,
                }
            };
            if sent == total {
                work.out.clear();
                return Ok(());
            }
            return Ok(self.queue(more, sent)?);
        }
        Ok(self.queue(more, 0)?)
    }

    /// Puts the gathered answers and `more` into the outlet, without the first `sent` octets, and flushes it.
    #[cold]
    fn queue(&mut self, more: &[&[u8]], mut sent: usize) -> io::Result<()> {
        self.with_outlet(|outlet, out| {
            for part in [out].iter().chain(more) {
                let skipped = sent.min(part.len());
                sent -= skipped;
                outlet.push(&part[skipped..])?;
            }
            Ok(())
        })
    }

    /// Sends the gathered answers and then a part of a file.
    pub(crate) fn transmit_file(&mut self, file: OwnedFd, at: u64, length: u64) -> Result<(), Lost> {
        Ok(self.with_outlet(|outlet, out| {
            outlet.push(out)?;
            outlet.push_file(file, at, length);
            Ok(())
        })?)
    }

    fn with_outlet(&mut self, fill: impl FnOnce(&mut Outlet, &[u8]) -> io::Result<()>) -> io::Result<()> {
        let out = &mut self.work.get_or_insert_default().out;
        let mut guard = self.link.outlet();
        let outlet = guard.get_or_insert_with(Outlet::new);
        self.link.waiting.store(true, Ordering::Release);
        self.has_outlet = true;
        fill(outlet, out)?;
        out.clear();
        drop(guard);
        // Also when the socket was full a moment ago: the edge that says it no longer is may have come before the outlet
        // was there to be flushed.
        match self.flush() {
            Flushed::Everything | Flushed::Blocked | Flushed::Paused => Ok(()),
            Flushed::Broken => Err(self.fault()),
        }
    }

    /// Why nothing can be sent any more.
    pub(crate) fn fault(&self) -> io::Error {
        self.link.outlet().as_ref().map_or_else(|| io::ErrorKind::BrokenPipe.into(), Outlet::fault)
    }

    /// Sends what waits in the outlet; when it is empty it is put away.
    pub(crate) fn flush(&mut self) -> Flushed {
        let mut guard = self.link.outlet();
        let flushed = match &mut *guard {
            Some(outlet) => outlet.flush(self.link.socket.as_fd()),
            None => Flushed::Everything,
        };
        self.paused = flushed == Flushed::Paused;
        if flushed == Flushed::Everything {
            *guard = None;
            self.link.waiting.store(false, Ordering::Release);
            self.has_outlet = false;
        }
        flushed
    }

    /// Says that we send nothing more.
    pub(crate) fn shut(&self) {
        let _ = shutdown(&self.link.socket, Shutdown::Write);
    }

    /// Whether closing now could destroy what we have sent: the client is or may be in the middle of sending.
    pub(crate) fn may_be_sending(&self) -> bool {
        self.readable || self.pipelines || self.has_unread()
    }

    fn has_unread(&self) -> bool {
        self.work.as_ref().is_some_and(|work| !work.intake.is_drained())
    }

    /// Whether something has come behind the message in hand.
    pub(crate) fn is_followed(&self) -> bool {
        let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        self.has_unread() || matches!(recv(&self.link.socket, &mut [0], look), Ok((_, 1..)))
    }
}

fn send_vectored(socket: &OwnedFd, first: &[u8], more: &[&[u8]]) -> rustix::io::Result<usize> {
    const MOST: usize = 64;
    let mut slices = [IoSlice::new(&[]); MOST];
    let mut used = 0;
    for part in [first].iter().chain(more).filter(|part| !part.is_empty()).take(MOST) {
        slices[used] = IoSlice::new(part);
        used += 1;
    }
    sendmsg(socket, &slices[..used], &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
}
