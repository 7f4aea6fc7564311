//! Relay thread: copies bytes between client connections and the socket pairs that applications got in a protocol upgrade.
//!
//! An application gets one end of a pair instead of its client's socket if the two do not carry the same bytes: the connection
//! has TLS, or bytes for the application have been received already. All relays of a reactor share one thread and one poller.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::connection::shared_socket::SharedSocket;
use crate::sys::poller::{Event, Poller, Source};
use crate::sys::process::forks;
use crate::sys::socket::{PlainSocket, Transport};
use crate::sys::{AsFd, Errno, OwnedFd, net};

/// Bytes that are copied at once.
const COPIED_AT_ONCE: usize = 64 << 10;
/// Pieces that are copied in each direction before other relays have their turn.
const PIECES_IN_TURN: usize = 4;
/// Bytes of the stack of the thread.
const STACK: usize = 256 << 10;

/// How a relay has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// The application has closed its end, and its client has all that it sent. The connection is still open.
    Application,
    /// Both sides have finished.
    Both,
    /// The connection is lost.
    ConnectionLost,
}

/// Called by the thread when a relay has ended. It must not wait.
type OnEnd = Box<dyn FnOnce(RelayEnd) + Send>;

/// One direction of a relay.
#[derive(Debug, Default)]
struct Direction {
    /// Bytes that the destination has not taken, from `at` on.
    waiting: Vec<u8>,
    at: usize,
    /// The source has finished.
    has_read_end: bool,
    /// The destination was told that, or takes nothing more.
    is_over: bool,
}

/// What a direction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    /// An event.
    Blocked,
    /// Its next turn.
    Paused,
    /// Nothing: it is over.
    Over,
    /// The source has failed.
    SourceLost,
    /// The destination has failed.
    DestinationLost,
}

impl Direction {
    /// Copies what is there, up to a limit.
    fn copy(&mut self, from: &impl Transport, to: &impl Transport, buffer: &mut [u8]) -> Copied {
        for _ in 0..PIECES_IN_TURN {
            if self.is_over {
                return Copied::Over;
            }
            while self.at < self.waiting.len() {
                match to.send(&self.waiting[self.at..], false) {
                    Ok(bytes) => self.at += bytes,
                    Err(Errno::AGAIN) => return Copied::Blocked,
                    Err(_) => return Copied::DestinationLost,
                }
            }
            (self.waiting, self.at) = (Vec::new(), 0);
            if self.has_read_end {
                if !to.finish() {
                    return Copied::Blocked;
                }
                self.is_over = true;
                return Copied::Over;
            }
            let received = match from.receive(buffer) {
                Ok(0) => {
                    self.has_read_end = true;
                    continue;
                }
                Ok(bytes) => bytes,
                Err(Errno::AGAIN) => return Copied::Blocked,
                Err(_) => return Copied::SourceLost,
            };
            let sent = match to.send(&buffer[..received], false) {
                Ok(bytes) => bytes,
                Err(Errno::AGAIN) => 0,
                Err(_) => return Copied::DestinationLost,
            };
            self.waiting.extend_from_slice(&buffer[sent..received]);
        }
        Copied::Paused
    }
}

/// A relay between a connection and an application.
struct Relay {
    socket: Arc<SharedSocket>,
    /// Our end of the pair.
    pair: PlainSocket,
    to_client: Direction,
    to_application: Direction,
    on_end: OnEnd,
    generation: u32,
    /// It waits for its turn.
    is_queued: bool,
}

impl fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Relay").field("pair", &self.pair).finish_non_exhaustive()
    }
}

impl Relay {
    /// Copies in both directions. `Err`: the relay has ended.
    fn advance(&mut self, buffer: &mut [u8]) -> Result<Copied, RelayEnd> {
        let (transport, pair) = (&self.socket.transport, &self.pair);
        let out = self.to_client.copy(pair, transport, buffer);
        match out {
            // The pair is broken only if the application has closed its end without reading everything.
            Copied::SourceLost => return Err(RelayEnd::Application),
            Copied::DestinationLost => return Err(RelayEnd::ConnectionLost),
            Copied::Over if self.to_application.is_over => return Err(RelayEnd::Both),
            Copied::Over if pair.peer_state().is_gone => return Err(RelayEnd::Application),
            Copied::Over | Copied::Blocked | Copied::Paused => {}
        }
        match self.to_application.copy(transport, pair, buffer) {
            Copied::SourceLost => Err(RelayEnd::ConnectionLost),
            Copied::DestinationLost => {
                // It has closed its end; what it has sent before is still copied.
                self.to_application = Direction { is_over: true, ..Direction::default() };
                Ok(Copied::Paused)
            }
            Copied::Over if self.to_client.is_over => Err(RelayEnd::Both),
            Copied::Paused => Ok(Copied::Paused),
            Copied::Over | Copied::Blocked => Ok(out),
        }
    }
}

/// What other threads give to the thread.
#[derive(Debug, Default)]
struct Inbox {
    relays: Vec<Relay>,
    is_running: bool,
}

#[derive(Debug)]
struct RelayThread {
    poller: Poller,
    inbox: Mutex<Inbox>,
    ends: AtomicBool,
}

impl RelayThread {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let (mut slots, mut vacant): (Vec<Option<Relay>>, Vec<u32>) = (Vec::new(), Vec::new());
        let (mut ready, mut generation) = (VecDeque::new(), 0);
        let mut buffer = vec![0; COPIED_AT_ONCE];
        while !self.ends.load(Ordering::Acquire) {
            let (mut is_woken, is_idle) = (false, ready.is_empty());
            let note = |Event { source, .. }: Event| match source {
                // The last bit is the side.
                Source::Connection { index, generation } => {
                    if let Some(Some(relay)) = slots.get_mut(index as usize >> 1)
                        && relay.generation == generation
                        && !relay.is_queued
                    {
                        relay.is_queued = true;
                        ready.push_back(index >> 1);
                    }
                }
                _ => is_woken = true,
            };
            let _ = self.poller.wait(is_idle, note);
            if is_woken {
                self.poller.clear_wake();
                for mut relay in std::mem::take(&mut self.inbox().relays) {
                    let index = vacant.pop().unwrap_or_else(|| {
                        slots.push(None);
                        (slots.len() - 1) as u32
                    });
                    generation += 1;
                    (relay.generation, relay.is_queued) = (generation, true);
                    let sides = [relay.socket.transport.as_fd(), relay.pair.as_fd()];
                    for (side, fd) in (0..).zip(sides) {
                        let _ = self.poller.add(fd, Source::Connection { index: index << 1 | side, generation });
                    }
                    slots[index as usize] = Some(relay);
                    ready.push_back(index);
                }
            }
            for _ in 0..ready.len() {
                let Some(index) = ready.pop_front() else { break };
                let Some(relay) = &mut slots[index as usize] else { continue };
                relay.is_queued = false;
                match relay.advance(&mut buffer) {
                    Ok(Copied::Paused) => {
                        relay.is_queued = true;
                        ready.push_back(index);
                    }
                    Ok(_) => {}
                    Err(end) => {
                        if let Some(relay) = slots[index as usize].take() {
                            vacant.push(index);
                            self.end(relay, end);
                        }
                    }
                }
            }
        }
    }

    fn end(&self, relay: Relay, end: RelayEnd) {
        let _ = self.poller.remove(relay.socket.transport.as_fd());
        let _ = self.poller.remove(relay.pair.as_fd());
        // Whatever the application still does with its end.
        relay.pair.shut_down();
        (relay.on_end)(end);
    }
}

/// The relays of a reactor, and their thread, which starts with the first of them.
#[derive(Debug)]
pub(crate) struct Relays {
    shared: Mutex<Option<Arc<RelayThread>>>,
    forks: u64,
}

impl Relays {
    pub(crate) fn new() -> Self {
        Relays { shared: Mutex::default(), forks: forks() }
    }

    /// Begins to copy between a connection, of which `received` has been received already, and an application, whose end of the
    /// pair is returned; it blocks. `on_end` is called by the thread when the relay has ended: by an application that closes its
    /// end, by a lost connection, or by both sides.
    pub(crate) fn start(
        &self,
        socket: &Arc<SharedSocket>,
        received: Vec<u8>,
        on_end: impl FnOnce(RelayEnd) + Send + 'static,
    ) -> Result<OwnedFd, Errno> {
        // In a fork, the thread exists only in the parent.
        if self.forks != forks() {
            return Err(Errno::BADF);
        }
        let (ours, theirs) = net::pair()?;
        let relay = Relay {
            socket: Arc::clone(socket),
            pair: ours.into(),
            to_client: Direction::default(),
            to_application: Direction { waiting: received, ..Direction::default() },
            on_end: Box::new(on_end),
            generation: 0,
            is_queued: false,
        };
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = match &*shared {
            Some(shared) => shared,
            None => {
                let new = RelayThread { poller: Poller::new()?, inbox: Mutex::default(), ends: AtomicBool::new(false) };
                shared.insert(Arc::new(new))
            }
        };
        let mut inbox = shared.inbox();
        if !inbox.is_running {
            let thread = thread::Builder::new().name("poorhttp-relay".to_owned()).stack_size(STACK);
            let runner = Arc::clone(shared);
            thread.spawn(move || runner.run()).map_err(|_| Errno::AGAIN)?;
            inbox.is_running = true;
        }
        inbox.relays.push(relay);
        drop(inbox);
        shared.poller.wake();
        Ok(theirs)
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        if self.forks == forks()
            && let Some(shared) = self.shared.get_mut().unwrap_or_else(PoisonError::into_inner)
        {
            shared.ends.store(true, Ordering::Release);
            shared.poller.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Client, application, and how the relay between them ends.
    fn relay(relays: &Relays, received: &[u8]) -> (UnixStream, UnixStream, Receiver<RelayEnd>) {
        let (ours, client) = UnixStream::pair().unwrap();
        let socket = Arc::new(SharedSocket::new(OwnedFd::from(ours), Arc::default()));
        let (told, ends) = channel();
        let application = relays.start(&socket, received.to_vec(), move |end| told.send(end).unwrap()).unwrap();
        (client, application.into(), ends)
    }

    fn read(mut stream: &UnixStream, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_received_before_comes_first() {
        let relays = Relays::new();
        let (mut client, mut application, ends) = relay(&relays, b"early ");
        client.write_all(b"late").unwrap();
        assert_eq!(read(&application, 10), b"early late");
        application.write_all(b"answer").unwrap();
        assert_eq!(read(&client, 6), b"answer");
        drop(application);
        assert_eq!(ends.recv(), Ok(RelayEnd::Application));
    }

    #[test]
    fn both_sides_may_finish_one_after_the_other() {
        let relays = Relays::new();
        let (mut client, mut application, ends) = relay(&relays, b"");
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut question = String::new();
        application.read_to_string(&mut question).unwrap();
        assert_eq!(question, "question");
        application.write_all(b"answer").unwrap();
        application.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!((&*answer, ends.recv()), ("answer", Ok(RelayEnd::Both)));
    }

    #[test]
    fn a_slow_reader_holds_up_nobody_else_and_loses_nothing() {
        let relays = Relays::new();
        let (slow, mut fast_application, ends) = relay(&relays, b"");
        let (mut client, application, _ends) = relay(&relays, b"");
        let all: Vec<u8> = (0..=255).cycle().take(8 << 20).collect();
        let expected = all.clone();
        let sender = thread::spawn(move || fast_application.write_all(&all).unwrap());
        client.write_all(b"hello").unwrap();
        assert_eq!(read(&application, 5), b"hello");
        assert!(read(&slow, 8 << 20) == expected);
        sender.join().unwrap();
        assert_eq!(ends.recv(), Ok(RelayEnd::Application));
    }

    #[test]
    fn an_application_learns_that_its_client_has_gone() {
        let relays = Relays::new();
        let (client, mut application, ends) = relay(&relays, b"");
        drop(client);
        assert_eq!(application.read(&mut [0; 8]).unwrap(), 0);
        drop(application);
        assert!(matches!(ends.recv(), Ok(RelayEnd::Both | RelayEnd::Application | RelayEnd::ConnectionLost)));
    }
}
