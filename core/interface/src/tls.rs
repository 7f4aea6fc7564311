//! Traits of TLS sessions and certificates: `core/tls` implements them; `core/python/src/ffi.rs` too, by a table of C functions.

use std::borrow::Cow;
use std::ffi::c_void;

use crate::kernel::{KernelKeys, Records};
use crate::table::{Header, Sink};

/// Bytes of content in the largest record (RFC 8446 section 5.1).
pub const RECORD: usize = 16 << 10;
/// Bytes that a record may have beyond its content: its header, nonce or type, tag, and padding to a block (TLS 1.2).
pub const OVERHEAD: usize = 64;
/// Bytes that may wait for the rest of their message or record: a whole record, or the certificates of a client.
pub const LARGEST_REST: usize = 32 << 10;

/// Type of a record with an alert (RFC 8446 section 5.1).
pub const ALERT: u8 = 21;
/// Level of an alert.
pub const FATAL: u8 = 2;
/// Alert (RFC 8446 section 6).
pub const INTERNAL_ERROR: u8 = 80;

/// A record with the alert for a client that is not served, and has no session.
pub const REFUSAL: [u8; 7] = [ALERT, 3, 3, 0, 2, FATAL, INTERNAL_ERROR];

/// The session cannot encrypt or give its keys away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// Names and values of environ variables.
pub type Variables = Vec<(Cow<'static, str>, String)>;

/// The certificates of a service, which may be replaced while sessions are open.
pub trait Certificates: Send + Sync {
    /// A session whose client has sent nothing yet. An error is its reason.
    fn session(&self) -> Result<Box<dyn Session>, String>;

    /// Uses others for new sessions: those that the main process has written. An error is one sentence, and all is as before.
    fn replace(&self, written: &[u8]) -> Result<(), String>;
}

crate::debug_by_name!(Certificates);

/// The server's side of a session, without I/O.
pub trait Session: Send {
    /// Whether the handshake is not complete.
    fn is_handshaking(&self) -> bool;

    /// Whether nothing has been received.
    fn is_untouched(&self) -> bool;

    /// Whether the peer has ended its side in an orderly way.
    fn is_closed(&self) -> bool;

    /// Whether nothing more can be received or sent but an alert.
    fn has_failed(&self) -> bool;

    /// Whether the peer has agreed to HTTP/2 (ALPN); after the handshake.
    fn has_streams(&self) -> bool;

    /// Whether records of the session itself are to be sent.
    fn has_control(&self) -> bool;

    /// Takes these records. They are sent before any content that is encrypted later.
    fn take_control(&mut self) -> Vec<u8>;

    /// Copies the bytes of an incomplete record to the beginning of `buffer`, and returns their number. The caller appends what
    /// it receives, and passes both to [`Session::receive`]. Calling only this function changes nothing.
    fn begin(&self, buffer: &mut [u8]) -> usize;

    /// Processes received bytes, those of [`Session::begin`] first. Content goes to `take`, also if an error follows it. An error
    /// is its reason, and ends the session.
    fn receive(&mut self, received: &mut [u8], take: &mut dyn FnMut(&[u8])) -> Result<(), String>;

    /// Encrypts `content`, which is not empty, into `records`, and returns the bytes of these. There is room for them if it has
    /// [`OVERHEAD`] bytes beyond the content for each [`RECORD`] begun.
    fn encrypt(&mut self, content: &[u8], records: &mut [u8]) -> Result<usize, Failed>;

    /// Adds the alert that nothing more follows to the records of the session.
    fn close(&mut self);

    /// The kind of records, if the kernel may make them from now on: nothing waits here, in either direction.
    fn can_offload(&self) -> Option<Records>;

    /// Gives the keys for sending away: only [`Session::begin`] and [`Session::receive`] are left. An error is the end of the
    /// session, so [`Session::can_offload`] comes first.
    fn offload(&mut self) -> Result<KernelKeys, Failed>;

    /// The variables of the session for the environ; after the handshake, and before [`Session::offload`].
    fn variables(&self) -> Variables;
}

crate::debug_by_name!(Session);

/// Bits of the state of a session, as the functions of [`TlsTable`] return them.
pub mod flags {
    /// The handshake is not complete.
    pub const HANDSHAKING: u32 = 1;
    /// Nothing has been received.
    pub const UNTOUCHED: u32 = 2;
    /// The peer has ended its side.
    pub const CLOSED: u32 = 4;
    /// Nothing more can be received or sent.
    pub const FAILED: u32 = 8;
    /// Records of the session itself are to be sent.
    pub const CONTROL: u32 = 16;
    /// The peer has agreed to HTTP/2.
    pub const STREAMS: u32 = 32;

    /// Those of a session.
    #[inline]
    pub fn of(session: &impl super::Session) -> u32 {
        let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        bit(session.is_handshaking(), HANDSHAKING)
            | bit(session.is_untouched(), UNTOUCHED)
            | bit(session.is_closed(), CLOSED)
            | bit(session.has_failed(), FAILED)
            | bit(session.has_control(), CONTROL)
            | bit(session.has_streams(), STREAMS)
    }
}

/// Name of the capsule that holds [`SharedCertificates`].
pub const CERTIFICATES: &std::ffi::CStr = c"poorhttp.tls.2";

/// Certificates for another extension module: a share of them, and the functions for it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharedCertificates {
    /// Where the functions are; they stay there.
    pub table: &'static TlsTable,
    /// One share, which is the capsule's.
    pub config: *const c_void,
}

/// [`Certificates`] and [`Session`] as C functions. `config` is a share of certificates, `session` is what
/// [`TlsTable::session_new`] has returned.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TlsTable {
    /// To be compared with that of the reader.
    pub header: Header,
    /// Makes another share.
    pub config_clone: unsafe extern "C" fn(config: *const c_void),
    /// Gives a share back.
    pub config_drop: unsafe extern "C" fn(config: *const c_void),
    /// [`Certificates::replace`]; whether it has succeeded. The sink takes the error.
    pub config_replace:
        unsafe extern "C" fn(config: *const c_void, bytes: *const u8, length: usize, error: Sink) -> bool,
    /// [`Certificates::session`]; null: the sink has the error. Writes the flags.
    pub session_new: unsafe extern "C" fn(config: *const c_void, error: Sink, flags: *mut u32) -> *mut c_void,
    /// Frees a session.
    pub session_drop: unsafe extern "C" fn(session: *mut c_void),
    /// Passes the records of the session to the sink. Returns the flags, as others do.
    pub take_control: unsafe extern "C" fn(session: *mut c_void, control: Sink) -> u32,
    /// [`Session::begin`].
    pub begin: unsafe extern "C" fn(session: *const c_void, buffer: *mut u8, size: usize) -> usize,
    /// [`Session::receive`]: it has failed if the flags say so.
    pub receive:
        unsafe extern "C" fn(session: *mut c_void, received: *mut u8, length: usize, content: Sink, error: Sink) -> u32,
    /// [`Session::encrypt`]: bytes, or -1.
    pub encrypt: unsafe extern "C" fn(
        session: *mut c_void,
        content: *const u8,
        length: usize,
        records: *mut u8,
        size: usize,
    ) -> isize,
    /// [`Session::close`].
    pub close: unsafe extern "C" fn(session: *mut c_void) -> u32,
    /// [`Session::can_offload`]: a place in [`Records::ALL`], or -1.
    pub can_offload: unsafe extern "C" fn(session: *const c_void) -> i32,
    /// [`Session::offload`]: writes the kernel's structure; its bytes, or -1.
    pub offload: unsafe extern "C" fn(session: *mut c_void, keys: *mut u8, size: usize) -> isize,
    /// [`Session::variables`]: passes each name, and behind it its value.
    pub variables: unsafe extern "C" fn(session: *const c_void, pairs: Sink),
}
