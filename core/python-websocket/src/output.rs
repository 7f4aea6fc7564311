//! What is sent on the socket of a WebSocket, and what waits until the socket takes it.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, send, sendmsg, shutdown};

/// Bytes that are copied to have one piece rather than two.
const COPIED: usize = 1 << 10;

const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// The sending side of a socket.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Whole frames, or the rest of them, from `at` on.
    waiting: Vec<u8>,
    at: usize,
    /// Bytes that were sent.
    pub(crate) total: u64,
    /// Nothing can be sent any more.
    pub(crate) is_broken: bool,
    /// Nothing follows: the side is to be ended when everything is sent.
    is_over: bool,
}

impl Output {
    /// Whether something waits.
    pub(crate) fn has_waiting(&self) -> bool {
        self.at < self.waiting.len()
    }

    /// Sends a frame, or what there is room for; the rest waits.
    pub(crate) fn send(&mut self, fd: &OwnedFd, header: &[u8], payload: &[u8]) {
        if self.is_broken || self.is_over {
            return;
        }
        let mut sent = 0;
        if !self.has_waiting() {
            let length = header.len() + payload.len();
            let outcome = match length {
                ..=COPIED => {
                    let mut whole = [0; COPIED];
                    whole[..header.len()].copy_from_slice(header);
                    whole[header.len()..length].copy_from_slice(payload);
                    send(fd, &whole[..length], FLAGS)
                }
                _ => {
                    let parts = [IoSlice::new(header), IoSlice::new(payload)];
                    sendmsg(fd, &parts, &mut SendAncillaryBuffer::default(), FLAGS)
                }
            };
            sent = self.sent(outcome);
            if sent == length || self.is_broken {
                return;
            }
        }
        self.waiting.extend_from_slice(&header[sent.min(header.len())..]);
        self.waiting.extend_from_slice(&payload[sent.saturating_sub(header.len())..]);
    }

    /// Sends what waits, as far as there is room.
    pub(crate) fn flush(&mut self, fd: &OwnedFd) {
        while self.has_waiting() {
            let outcome = send(fd, &self.waiting[self.at..], FLAGS);
            match self.sent(outcome) {
                0 => break,
                sent => self.at += sent,
            }
        }
        if !self.has_waiting() {
            (self.waiting, self.at) = (Vec::new(), 0);
            if self.is_over {
                let _ = shutdown(fd, Shutdown::Write);
            }
        }
    }

    /// Ends the side behind what waits.
    pub(crate) fn finish(&mut self, fd: &OwnedFd) {
        if !self.is_over {
            self.is_over = true;
            self.flush(fd);
        }
    }

    /// The client is gone: what waits is dropped.
    pub(crate) fn lose(&mut self) {
        self.is_broken = true;
        (self.waiting, self.at) = (Vec::new(), 0);
    }

    /// Counts what was sent.
    fn sent(&mut self, outcome: Result<usize, Errno>) -> usize {
        match outcome {
            Ok(sent) => {
                self.total += sent as u64;
                sent
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => 0,
            Err(_) => {
                self.lose();
                0
            }
        }
    }
}
