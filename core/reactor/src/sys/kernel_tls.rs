//! Kernel TLS: the kernel makes the records of what is sent on a TCP connection.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use poorhttp_interface::kernel::{KernelKeys, Records};
use rustix::io::{Errno, Result};

/// System calls that no crate offers without `unsafe`, which is not for this one.
#[derive(Debug)]
pub struct KernelTls {
    /// Sets an option of a socket: its level, its name, its value.
    pub set_option: fn(BorrowedFd<'_>, i32, i32, &[u8]) -> io::Result<()>,
    /// Sends a record of this type, without waiting. It is not sent in parts.
    pub send_record: fn(BorrowedFd<'_>, u8, &[u8]) -> io::Result<()>,
}

static CALLS: OnceLock<(KernelTls, [bool; Records::ALL.len()])> = OnceLock::new();

impl KernelTls {
    /// Has the connections of this process use it from now on, for records of the kinds that are returned. The kernel may load
    /// its module for that, if this process has the capability CAP_NET_ADMIN.
    pub fn enable(self) -> impl Iterator<Item = Records> {
        let (_, usable) = CALLS.get_or_init(|| {
            let usable = Records::ALL.map(|records| self.is_usable(records).is_ok());
            (self, usable)
        });
        Records::ALL.into_iter().zip(usable).filter(|(_, usable)| **usable).map(|(records, _)| records)
    }

    /// Tries it with a connection that is good for nothing else.
    fn is_usable(&self, records: Records) -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let socket = TcpStream::connect(listener.local_addr()?)?;
        self.prepare(socket.as_fd())?;
        self.begin(socket.as_fd(), &records.probe())
    }

    fn prepare(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        const SOL_TCP: i32 = 6;
        const TCP_ULP: i32 = 31;
        (self.set_option)(socket, SOL_TCP, TCP_ULP, b"tls")
    }

    fn begin(&self, socket: BorrowedFd<'_>, keys: &KernelKeys) -> io::Result<()> {
        const SOL_TLS: i32 = 282;
        const TLS_TX: i32 = 1;
        (self.set_option)(socket, SOL_TLS, TLS_TX, keys.as_bytes())
    }
}

/// Prepares a connection for [`begin`]; nothing else changes. `false`: it is not possible.
pub(crate) fn prepare(socket: impl AsFd, records: Records) -> bool {
    CALLS.get().is_some_and(|(calls, usable)| usable[records as usize] && calls.prepare(socket.as_fd()).is_ok())
}

/// From now on, what is sent is content, and the kernel makes records of it.
pub(crate) fn begin(socket: impl AsFd, keys: &KernelKeys) -> Result<()> {
    let (calls, _) = CALLS.get().ok_or(Errno::OPNOTSUPP)?;
    calls.begin(socket.as_fd(), keys).map_err(errno)
}

/// Sends the alert that nothing more follows, behind everything that was sent.
pub(crate) fn send_close_notify(socket: impl AsFd) -> Result<()> {
    const ALERT: u8 = 21;
    const WARNING: u8 = 1;
    const CLOSE_NOTIFY: u8 = 0;
    let (calls, _) = CALLS.get().ok_or(Errno::OPNOTSUPP)?;
    (calls.send_record)(socket.as_fd(), ALERT, &[WARNING, CLOSE_NOTIFY]).map_err(errno)
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
