//! The control channel: one-byte messages between a worker and its main process.

use std::sync::Arc;

use crate::sys::{AsFd, BorrowedFd, Errno, OwnedFd, ServerFd, net};

/// Sent by the main process: does this worker still answer?
const PING: u8 = b'?';
/// The answer to [`PING`].
const PONG: u8 = b'.';
/// Other workers accept from now on.
const RETIRE: u8 = b'r';
/// The same, and this process is forked for new workers when it has finished.
const PROMOTE: u8 = b'p';
/// Other workers accept from now on, and idle connections are passed to them.
const DETACH: u8 = b'H';
/// The main process will stop this worker soon.
const DRAIN: u8 = b'd';
/// The main process will not: the end of [`DRAIN`].
const UNDRAIN: u8 = b'u';
/// A descriptor comes with it, of what the transport of the listeners uses anew: their certificates.
const RENEW: u8 = b'T';
/// Stop, and answer what is in flight: the same as SIGTERM, whose handler the application may have replaced.
const STOP: u8 = b's';
/// Stop at once: the same as SIGINT and SIGQUIT.
const QUICK_STOP: u8 = b'q';
/// Open the files of the logs again: the same as SIGUSR1.
const REOPEN_LOGS: u8 = b'o';
/// Long polls are to end.
const END_LONG_POLLS: u8 = b'l';
/// This worker has begun as many requests as `recycle_after` allows.
pub(crate) const RECYCLE: u8 = b'm';
/// This worker has begun a request since the main process last looked at its memory.
pub(crate) const ACTIVE: u8 = b'a';
/// All slots of this worker are taken, and the main process does not check that.
pub(crate) const FULL: u8 = b'f';
/// A request of this worker cannot be interrupted.
pub(crate) const STUCK: u8 = b't';

/// Bytes read at once.
const BUFFER: usize = 64;

/// A worker's end of the socket. No call waits.
#[derive(Clone, Debug)]
pub struct Channel {
    socket: Arc<ServerFd>,
}

/// A command of the main process; of several, the last of this list counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Command {
    /// No new command.
    None,
    /// Stop; other workers accept the connections in the backlog.
    Retire,
    /// The same, and this process becomes the preloader.
    Promote,
    /// Stop; other workers get the idle connections.
    Detach,
    /// The main process has ended: stop.
    End,
}

/// Everything that was received at once.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) command: Command,
    /// Whether health checks report from now on that new clients should go elsewhere.
    pub(crate) drain: Option<bool>,
    /// Long polls are to end.
    pub(crate) end_long_polls: bool,
    /// The server stops: `true` with its requests answered, `false` at once.
    pub(crate) stop: Option<bool>,
    /// The files of the logs have been renamed.
    pub(crate) reopen_logs: bool,
    /// New certificates.
    pub(crate) renewed: Option<OwnedFd>,
}

impl Channel {
    /// `socket` is a stream socket to the main process.
    pub fn new(socket: OwnedFd) -> Self {
        Channel { socket: Arc::new(socket.into()) }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends to the main process. A message is dropped if the socket is full, as the main process has not received for long
    /// then, or if the main process has ended.
    pub(crate) fn send(&self, message: u8) {
        let _ = net::send(&self.socket, &[message], false);
    }

    /// Waits until something is there to be received. `false`: that cannot be known.
    pub(crate) fn wait(&self) -> bool {
        net::wait_readable(&self.socket).is_ok()
    }

    /// Whether something other than pings is to be received, or the main process has ended.
    pub(crate) fn has_command(&self) -> bool {
        let mut buffer = [PING; BUFFER];
        match net::peek(&self.socket, &mut buffer) {
            Ok(0) => true,
            Ok(_) => buffer.iter().any(|byte| *byte != PING),
            Err(error) => error != Errno::AGAIN,
        }
    }

    /// Receives all messages and answers pings.
    #[cold]
    pub(crate) fn receive(&self) -> Received {
        let mut received = Received {
            command: Command::None,
            drain: None,
            end_long_polls: false,
            stop: None,
            reopen_logs: false,
            renewed: None,
        };
        let mut buffer = [0; BUFFER];
        loop {
            match net::receive_with_fd(&self.socket, &mut buffer) {
                Ok((length @ 1.., fd)) => {
                    let bytes = &buffer[..length];
                    if bytes.contains(&RENEW) {
                        received.renewed = fd.or(received.renewed);
                    }
                    received.end_long_polls |= bytes.contains(&END_LONG_POLLS);
                    received.reopen_logs |= bytes.contains(&REOPEN_LOGS);
                    if bytes.contains(&QUICK_STOP) {
                        received.stop = Some(false);
                    } else if bytes.contains(&STOP) {
                        received.stop = received.stop.or(Some(true));
                    }
                    if let Some(last) = bytes.iter().rfind(|byte| [DRAIN, UNDRAIN].contains(byte)) {
                        received.drain = Some(*last == DRAIN);
                    }
                    if bytes.contains(&PING) {
                        self.send(PONG);
                    }
                    for (byte, command) in
                        [(RETIRE, Command::Retire), (PROMOTE, Command::Promote), (DETACH, Command::Detach)]
                    {
                        if bytes.contains(&byte) {
                            received.command = received.command.max(command);
                        }
                    }
                }
                Err(Errno::AGAIN) => return received,
                Ok(_) | Err(_) => return Received { command: Command::End, ..received },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Channel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Channel::new(ours.into()), theirs)
    }

    #[test]
    fn pings_are_answered_and_the_strongest_command_counts() {
        let (ours, mut theirs) = pair();
        assert_eq!(ours.receive().command, Command::None);
        theirs.write_all(b"?").unwrap();
        assert_eq!(ours.receive().command, Command::None);
        theirs.write_all(b"what it does not know, ?r").unwrap();
        assert_eq!(ours.receive().command, Command::Retire);
        theirs.write_all(b"d").unwrap();
        assert_eq!(ours.receive().drain, Some(true));
        theirs.write_all(b"du?").unwrap();
        assert_eq!(ours.receive().drain, Some(false));
        theirs.write_all(b"rd").unwrap();
        assert_eq!(ours.receive().command, Command::Retire);
        theirs.write_all(b"pr").unwrap();
        assert_eq!(ours.receive().command, Command::Promote);
        theirs.write_all(b"rHd").unwrap();
        assert_eq!(ours.receive().command, Command::Detach);
        theirs.write_all(b"so").unwrap();
        let received = ours.receive();
        assert_eq!((received.stop, received.reopen_logs), (Some(true), true));
        theirs.write_all(b"qs").unwrap();
        let received = ours.receive();
        assert_eq!((received.stop, received.reopen_logs), (Some(false), false));
        drop(ours);
        let mut answers = Vec::new();
        theirs.read_to_end(&mut answers).unwrap();
        assert_eq!(answers, b"...");
    }

    #[test]
    fn the_end_of_the_main_process_overrides_its_commands() {
        let (ours, mut theirs) = pair();
        theirs.write_all(b"r").unwrap();
        drop(theirs);
        assert_eq!(ours.receive().command, Command::End);
        ours.send(RECYCLE);
    }

    #[test]
    fn sending_to_a_full_socket_does_not_block() {
        let (ours, _theirs) = pair();
        (0..1_000_000).for_each(|_| ours.send(RECYCLE));
    }
}
