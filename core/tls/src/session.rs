//! One TLS session: bytes of the peer in, content out, and back; whether it was resumed, for the environ. No sockets.
//!
//! It is built on rustls' unbuffered interface: the caller has the buffers, so an idle session holds none, and what was
//! received is decrypted where it lies.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use poorhttp_interface::kernel::{KernelKeys, Records};
use poorhttp_interface::tls::{self, ALERT, FATAL, INTERNAL_ERROR, REFUSAL};
pub use poorhttp_interface::tls::{LARGEST_REST, OVERHEAD, RECORD};
use rustls::PeerIncompatible::Tls12NotOffered;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic};
use rustls::{Error, HandshakeKind, InvalidMessage, PeerMisbehaved, ServerConfig};

use crate::offload::{self, Receiver, records_of};
use crate::tickets::{self, Origin};
use crate::variables::{SessionInfo, variables};

/// HTTP/2 in ALPN (RFC 9113 section 3.1).
pub(crate) const HTTP2: &[u8] = b"h2";

thread_local! {
    /// The name of the ClientHello that this thread has just processed.
    static SERVER_NAME: RefCell<Option<Box<str>>> = const { RefCell::new(None) };
}

/// Notes the server name of a ClientHello: the unbuffered connection does not tell. To be called by the certificate resolver,
/// which runs in the thread that processes the message.
pub fn note_server_name(name: Option<&str>) {
    SERVER_NAME.set(name.map(Box::from));
}

/// What makes and reads the records.
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one")]
enum Connection {
    Both(UnbufferedServerConnection),
    /// The kernel makes them.
    Receiving(Receiver),
    /// The kernel was to make them, and it has come to nothing.
    Lost,
}

/// The server's side of a session.
pub struct Session {
    connection: Connection,
    may_offload: bool,
    /// Nothing was received since content was encrypted: the session has nothing of its own to send.
    is_settled: bool,
    /// Received bytes that are not a whole message yet; rustls may have decrypted some of them already.
    rest: Vec<u8>,
    /// Records that are to be sent: messages of the handshake, tickets, alerts.
    control: Vec<u8>,
    server_name: Option<Box<str>>,
    /// The peer has said that it sends nothing more.
    is_closed: bool,
    has_failed: bool,
    /// Nothing has been received.
    is_untouched: bool,
    /// Something was sent.
    has_answered: bool,
    /// For its tickets.
    origin: Origin,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of the connection: it has the keys.
        formatter.debug_struct("Session").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl Session {
    /// A session whose client has sent nothing yet.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, Error> {
        Ok(Session {
            may_offload: config.enable_secret_extraction,
            connection: Connection::Both(UnbufferedServerConnection::new(config)?),
            is_settled: false,
            rest: Vec::new(),
            control: Vec::new(),
            server_name: None,
            is_closed: false,
            has_failed: false,
            is_untouched: true,
            has_answered: false,
            origin: Origin::default(),
        })
    }

    /// Whether the handshake is not complete.
    pub fn is_handshaking(&self) -> bool {
        matches!(&self.connection, Connection::Both(connection) if connection.is_handshaking())
    }

    /// Whether nothing has been received.
    pub fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// Whether the peer has ended its side in an orderly way.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether nothing more can be received or sent but an alert.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether the peer has agreed to HTTP/2 (ALPN); after the handshake, and before [`Session::offload`].
    pub fn has_streams(&self) -> bool {
        matches!(&self.connection, Connection::Both(connection) if connection.alpn_protocol() == Some(HTTP2))
    }

    /// What is known of the peer; after the handshake, and before [`Session::offload`].
    pub fn info(&self) -> SessionInfo<'_> {
        let Connection::Both(connection) = &self.connection else { return SessionInfo::default() };
        SessionInfo {
            protocol: connection.protocol_version(),
            cipher: connection.negotiated_cipher_suite(),
            server_name: self.server_name.as_deref(),
            certificates: connection.peer_certificates(),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// The kind of records, if the kernel may make them from now on: nothing waits here, in either direction.
    pub fn can_offload(&self) -> Option<Records> {
        let Connection::Both(connection) = &self.connection else { return None };
        let is_quiet = self.is_settled && self.rest.is_empty() && self.control.is_empty();
        if !self.may_offload || !is_quiet || self.is_closed || self.has_failed {
            return None;
        }
        connection.negotiated_cipher_suite().and_then(records_of)
    }

    /// Gives the keys for sending away: only [`Session::begin`] and [`Session::receive`] are left. An error is the end of the
    /// session, so [`Session::can_offload`] comes first.
    pub fn offload(&mut self) -> Result<KernelKeys, Error> {
        let Connection::Both(connection) = std::mem::replace(&mut self.connection, Connection::Lost) else {
            return Err(Error::HandshakeNotComplete);
        };
        let (keys, receiver) = offload::offload(connection).inspect_err(|_| self.has_failed = true)?;
        self.connection = Connection::Receiving(receiver);
        Ok(keys)
    }

    /// Records of the session itself that are to be sent before any content that is encrypted later.
    pub fn take_control(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.control)
    }

    /// Whether there are such records.
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Copies the bytes of an incomplete record to the beginning of `buffer`, and returns their number. The caller appends what
    /// it receives, and passes both to [`Session::receive`]. Calling only this function changes nothing.
    pub fn begin(&self, buffer: &mut [u8]) -> usize {
        let length = self.rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.rest[..length]);
        length
    }

    /// Processes received bytes, those of [`Session::begin`] first. Content goes to `take`, also if an error follows it.
    pub fn receive(&mut self, received: &mut [u8], mut take: impl FnMut(&[u8])) -> Result<(), Error> {
        if self.has_failed {
            return Err(Error::General("the session has failed".into()));
        }
        (self.is_untouched, self.is_settled) = (false, false);
        let mut at = 0;
        let outer = tickets::exchange_origin(self.origin);
        let outcome = match &mut self.connection {
            Connection::Both(_) => self.process(received, &mut at, &mut take),
            Connection::Receiving(receiver) => {
                receiver.receive(received, &mut at, &mut take).map(|is_closed| self.is_closed = is_closed)
            }
            Connection::Lost => Err(Error::DecryptError),
        };
        self.origin = tickets::exchange_origin(outer);
        if let Connection::Both(connection) = &self.connection
            && connection.handshake_kind().is_some_and(|kind| kind != HandshakeKind::Resumed)
        {
            // A ticket was decrypted, and not used.
            self.origin.resumed = None;
        }
        if let Some(name) = SERVER_NAME.take() {
            self.server_name = Some(name);
        }
        match outcome {
            Ok(()) if self.is_closed => self.rest = Vec::new(),
            Ok(()) if received.len() - at > LARGEST_REST => {
                return self.fail(Error::General("a message is too long".into()), received, at);
            }
            Ok(()) => {
                // An idle session holds no buffer.
                self.rest.clear();
                self.rest.shrink_to(0);
                self.rest.extend_from_slice(&received[at..]);
            }
            Err(error) => return self.fail(error, received, at),
        }
        self.has_answered |= !self.control.is_empty();
        Ok(())
    }

    fn process(&mut self, received: &mut [u8], at: &mut usize, take: &mut impl FnMut(&[u8])) -> Result<(), Error> {
        let Connection::Both(connection) = &mut self.connection else { return Ok(()) };
        loop {
            let UnbufferedStatus { mut discard, state } = connection.process_tls_records(&mut received[*at..]);
            let goes_on = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
                    match traffic.next_record() {
                        Some(Ok(record)) => {
                            discard += record.discard;
                            take(record.payload);
                        }
                        Some(Err(error)) => break Err(error),
                        None => break Ok(true),
                    }
                },
                Ok(ConnectionState::EncodeTlsData(message)) => encode(message, &mut self.control).map(|()| true),
                Ok(ConnectionState::TransmitTlsData(sent)) => {
                    // It is in `control`, which is sent before everything else.
                    sent.done();
                    Ok(true)
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.is_closed = true;
                    Ok(true)
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) | ConnectionState::Closed) => {
                    Ok(false)
                }
                // Early data is never accepted.
                Ok(_) => Err(Error::General("an unknown state".into())),
                Err(error) => Err(error),
            };
            *at = received.len().min(*at + discard);
            if !goes_on? {
                return Ok(());
            }
        }
    }

    /// Ends the session because of what was received, and adds the alert that tells the peer. `rest`: what rustls has not done
    /// with.
    fn fail(&mut self, error: Error, received: &[u8], rest: usize) -> Result<(), Error> {
        self.has_failed = true;
        self.rest = Vec::new();
        if matches!(error, Error::AlertReceived(_)) {
            return Err(error);
        }
        let old_version = old_version(received).filter(|_| !self.has_answered);
        let error = match error {
            // What is missing in a ClientHello of such a version is not the reason.
            Error::PeerIncompatible(_) if old_version.is_some() => Error::PeerIncompatible(Tls12NotOffered),
            other => other,
        };
        let own = self.take_alert(&mut []);
        let is_general = own.is_none();
        let mut last = own.or_else(|| match self.has_answered {
            false => Some(REFUSAL.to_vec()),
            // rustls has made no alert for this error, has no function for one, and only rustls has the keys. So rustls is given
            // an invalid record, longer than the largest allowed, behind all incomplete bytes: the alert for that is sent.
            true => {
                let mut input = received.get(rest..).unwrap_or_default().to_vec();
                input.resize(input.len() + RECORD + 2 * OVERHEAD + (2 << 10), 0xFF);
                self.take_alert(&mut input)
            }
        });
        if let Some([ALERT, 3, minor, 0, 2, level, description]) = last.as_deref_mut() {
            // It is not encrypted, so a better one can take its place.
            if let Some(better) = alert_for(&error).or(is_general.then_some(INTERNAL_ERROR)) {
                (*level, *description) = (FATAL, better);
            }
            // Clients do not read records of a version that they do not know.
            *minor = old_version.unwrap_or(*minor);
        }
        self.control.extend(last.unwrap_or_default());
        Err(error)
    }

    /// Adds to `control` what rustls has to send, except the last record, the alert, which is returned. `input` is looked at
    /// only when there is nothing to send.
    fn take_alert(&mut self, mut input: &mut [u8]) -> Option<Vec<u8>> {
        let Connection::Both(connection) = &mut self.connection else { return None };
        let mut last = None;
        while connection.wants_write() || (last.is_none() && !input.is_empty()) {
            let UnbufferedStatus { discard, state } = connection.process_tls_records(input);
            let is_stuck = match state {
                Ok(ConnectionState::EncodeTlsData(message)) => {
                    self.control.extend(last.take().unwrap_or_default());
                    let mut record = Vec::new();
                    encode(message, &mut record).ok()?;
                    last = Some(record);
                    false
                }
                Ok(ConnectionState::TransmitTlsData(sent)) => {
                    sent.done();
                    false
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while traffic.next_record().is_some() {}
                    false
                }
                _ => discard == 0 && !connection.wants_write(),
            };
            if is_stuck {
                break;
            }
            let done = discard.min(input.len());
            input = &mut input[done..];
        }
        last
    }

    /// Calls `write` when content may be sent. What the session itself has to send goes to `control` first.
    fn write<T>(&mut self, write: impl FnOnce(WriteTraffic<'_, ServerConnectionData>) -> T) -> Result<T, Error> {
        let Connection::Both(connection) = &mut self.connection else { return Err(Error::EncryptError) };
        loop {
            let UnbufferedStatus { state, .. } = connection.process_tls_records(&mut self.rest);
            match state? {
                ConnectionState::WriteTraffic(traffic) => return Ok(write(traffic)),
                ConnectionState::EncodeTlsData(message) => encode(message, &mut self.control)?,
                ConnectionState::TransmitTlsData(sent) => sent.done(),
                ConnectionState::PeerClosed => self.is_closed = true,
                _ => return Err(Error::HandshakeNotComplete),
            }
        }
    }

    /// Encrypts `content`, which is not empty, into `records`, and returns the bytes of these. There is room for them if it has
    /// [`OVERHEAD`] bytes beyond the content for each [`RECORD`] begun.
    pub fn encrypt(&mut self, content: &[u8], records: &mut [u8]) -> Result<usize, Error> {
        if self.has_failed {
            return Err(Error::EncryptError);
        }
        let written = self.write(|mut traffic| traffic.encrypt(content, records))?;
        self.is_settled = true;
        written.map_err(|error| match error {
            EncryptError::InsufficientSize(_) => Error::General("too little room for records".into()),
            EncryptError::EncryptExhausted => Error::EncryptError,
        })
    }

    /// Adds the alert to `control` that says that nothing more follows.
    pub fn close(&mut self) {
        if self.has_failed || self.is_handshaking() {
            return;
        }
        let mut alert = [0; 2 * OVERHEAD];
        if let Ok(Ok(length)) = self.write(|mut traffic| traffic.queue_close_notify(&mut alert)) {
            self.control.extend_from_slice(&alert[..length]);
        }
    }
}

impl tls::Session for Session {
    fn is_handshaking(&self) -> bool {
        self.is_handshaking()
    }

    fn is_untouched(&self) -> bool {
        self.is_untouched()
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn has_failed(&self) -> bool {
        self.has_failed()
    }

    fn has_control(&self) -> bool {
        self.has_control()
    }

    fn has_streams(&self) -> bool {
        self.has_streams()
    }

    fn take_control(&mut self) -> Vec<u8> {
        self.take_control()
    }

    fn begin(&self, buffer: &mut [u8]) -> usize {
        self.begin(buffer)
    }

    fn receive(&mut self, received: &mut [u8], take: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        self.receive(received, take).map_err(|error| error.to_string())
    }

    fn encrypt(&mut self, content: &[u8], records: &mut [u8]) -> Result<usize, tls::Failed> {
        self.encrypt(content, records).map_err(|_| tls::Failed)
    }

    fn close(&mut self) {
        self.close();
    }

    fn can_offload(&self) -> Option<Records> {
        self.can_offload()
    }

    fn offload(&mut self) -> Result<KernelKeys, tls::Failed> {
        self.offload().map_err(|_| tls::Failed)
    }

    fn variables(&self) -> tls::Variables {
        variables(&self.info())
    }
}

/// Alerts (RFC 8446 section 6).
const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const HANDSHAKE_FAILURE: u8 = 40;
const DECODE_ERROR: u8 = 50;
const PROTOCOL_VERSION: u8 = 70;

/// The alert that the standard has for an error for which rustls sends another one, or none.
fn alert_for(error: &Error) -> Option<u8> {
    match error {
        Error::InvalidMessage(InvalidMessage::MessageTooLarge) => Some(RECORD_OVERFLOW),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => Some(UNEXPECTED_MESSAGE),
        Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) | Error::PeerIncompatible(Tls12NotOffered) => {
            Some(PROTOCOL_VERSION)
        }
        Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge) => Some(DECODE_ERROR),
        // TLS 1.2 has no alert of its own for it; that of TLS 1.3 is encrypted.
        Error::NoCertificatesPresented => Some(HANDSHAKE_FAILURE),
        Error::PeerMisbehaved(
            PeerMisbehaved::MessageInterleavedWithHandshakeMessage | PeerMisbehaved::TooManyEmptyFragments,
        ) => Some(UNEXPECTED_MESSAGE),
        _ => None,
    }
}

/// The minor version of a ClientHello for SSL 3.0, TLS 1.0 or TLS 1.1 at the beginning of what was received.
fn old_version(received: &[u8]) -> Option<u8> {
    match received {
        [22, 3, _, _, _, 1, _, _, _, 3, minor @ 0..3, ..] => Some(*minor),
        _ => None,
    }
}

/// Adds a record of the session itself to `control`.
fn encode(mut message: EncodeTlsData<'_, ServerConnectionData>, control: &mut Vec<u8>) -> Result<(), Error> {
    let start = control.len();
    let mut length = 1 << 10;
    loop {
        control.resize(start + length, 0);
        match message.encode(&mut control[start..]) {
            Ok(written) => {
                control.truncate(start + written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) if size.required_size > length => length = size.required_size,
            Err(_) => return Err(Error::EncryptError),
        }
    }
}
