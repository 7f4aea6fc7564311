//! The present request of a connection: head, body, peer and trusted proxies, and the buffer of its response.
//!
//! In HTTP/1 and in the gateway protocols a connection carries one request at a time, so it has one of these, which is used
//! again for the next request. In a protocol with several streams on a connection, each stream has its own.

use std::any::Any;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::connection::body::incoming::{Body, IncomingBody};
use crate::connection::body::streamed::StreamedBody;
use crate::connection::body::throughput::Throughput;
use crate::connection::multiplexed::Origin as StreamsOrigin;
use crate::connection::peer_trust::ForwardedInfo;
use crate::limits::{MAX_CACHE_MISSES, MAX_CACHED_HEADS, MOST_COALESCED};
use crate::log::access::AccessLog;
use crate::log::entry::{Answer, Asked};
use crate::log::request_id::{RequestId, RequestIds, RequestName};
use poorhttp_http::{Head, Origin, ReadBuffer, RequestParser, Response};

/// Buffers that are needed only while a request is received or answered.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) read_buffer: ReadBuffer,
    /// Output that was not sent yet.
    pub(crate) out: Vec<u8>,
    /// The response, for the access log once it has been sent.
    pub(crate) answer: Option<Answer>,
    /// Body of the request, if it has one.
    pub(crate) body: Option<Box<IncomingBody>>,
    /// The application receives the body itself.
    pub(crate) streamed: Option<Box<StreamedBody>>,
    /// How fast the body is received.
    pub(crate) throughput: Throughput,
}

impl Buffers {
    /// Whether another connection may use them.
    pub(crate) fn is_idle(&self) -> bool {
        !self.read_buffer.is_in_use() && self.out.is_empty() && self.body.is_none() && self.streamed.is_none()
    }

    /// Makes them ready for another connection.
    pub(crate) fn clear(&mut self) {
        self.read_buffer.clear();
        self.out.clear();
        (self.body, self.streamed, self.throughput) = (None, None, Throughput::default());
    }

    /// Bytes that are allocated, or `None` if they are not worth keeping: they have grown much, or have room for the head of a stream
    /// alone, and a connection that received into that would receive twice.
    #[inline]
    pub(crate) fn memory(&self) -> Option<usize> {
        let (received, sent) = (self.read_buffer.capacity(), self.out.capacity());
        // Pieces that wait for each other need twice as much while they grow.
        ((ReadBuffer::ROOM..=2 * ReadBuffer::ROOM).contains(&received) && sent as u64 <= 2 * MOST_COALESCED)
            .then_some(size_of::<Self>() + received + sent)
    }
}

/// What the embedding has made of a head that the client of a connection repeats.
#[derive(Debug)]
struct CachedHead {
    made: Option<Box<dyn Any + Send + Sync>>,
    /// Number of cached heads of the reactor.
    count: Arc<AtomicUsize>,
}

impl CachedHead {
    /// `None`: the reactor has [`MAX_CACHED_HEADS`] already.
    fn new(count: &Arc<AtomicUsize>) -> Option<Self> {
        if count.fetch_add(1, Ordering::Relaxed) >= MAX_CACHED_HEADS {
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

/// The request of a connection, and where it comes from.
#[derive(Debug, Default)]
pub struct Request {
    /// Running number in the reactor; that of the request before until this one is complete.
    pub(crate) number: u64,
    /// Requests that were answered on the connection before this one.
    pub(crate) served: u32,
    /// Since when there is something to be read, in microseconds of [`crate::sys::clock::precise_us`]; for
    /// [`crate::log::slow`].
    pub(crate) since: u64,
    pub(crate) parser: RequestParser,
    pub(crate) buffers: Option<Box<Buffers>>,
    /// Number of the listener that accepted the connection.
    pub(super) listener: u32,
    /// Unknown for a Unix socket.
    pub(super) peer: Option<SocketAddr>,
    /// The peer is a trusted proxy. Otherwise fields that only a proxy can know may be forged, or none are configured.
    pub(crate) is_trusted: bool,
    /// A PROXY protocol header is to come before anything else.
    pub(super) awaits_proxy_header: bool,
    /// The connection has TLS, or the PROXY protocol header says that the client speaks it.
    pub(super) is_secure: bool,
    /// The connection has TLS, which ends here.
    pub(crate) over_tls: bool,
    /// What proxies report of the requests; none before they have reported anything.
    pub(super) forwarded: Option<Box<ForwardedInfo>>,
    cached_head: Option<CachedHead>,
    /// Requests whose head was not the cached one.
    cache_misses: u8,
}

impl Request {
    pub(super) fn new(listener: u32, peer: Option<SocketAddr>) -> Self {
        Request { listener, peer, ..Request::default() }
    }

    /// The request of a stream with this head, or request line, in the buffer.
    pub(crate) fn of_stream(
        origin: &StreamsOrigin,
        served: u32,
        read_buffer: ReadBuffer,
        parser: RequestParser,
    ) -> Self {
        let StreamsOrigin { listener, peer, is_trusted, is_secure, over_tls, .. } = *origin;
        let buffers = Some(Box::new(Buffers { read_buffer, ..Buffers::default() }));
        // It is the only one of its stream, so there is no point in caching its head.
        let cache_misses = u8::MAX;
        Request {
            listener,
            peer,
            is_trusted,
            is_secure,
            over_tls,
            served,
            buffers,
            parser,
            cache_misses,
            ..Request::default()
        }
    }

    /// What the streams of this connection have in common.
    pub(crate) fn origin_of_streams(&self, tls_variables: Vec<(Cow<'static, str>, String)>) -> StreamsOrigin {
        let Request { listener, peer, is_trusted, is_secure, over_tls, .. } = *self;
        StreamsOrigin { listener, peer, is_trusted, is_secure, over_tls, tls_variables }
    }

    #[inline]
    pub(crate) fn buffers(&mut self) -> &mut Buffers {
        self.buffers.get_or_insert_default()
    }

    #[inline]
    fn read_buffer(&self) -> Option<&ReadBuffer> {
        Some(&self.buffers.as_ref()?.read_buffer)
    }

    /// The head and the bytes its positions refer to.
    #[inline]
    pub fn head(&self) -> Option<(&Head, &[u8])> {
        let buffer = self.read_buffer()?;
        Some((&buffer.head, buffer.head_bytes()))
    }

    /// Whether it is about the server, not about a resource: `OPTIONS *`.
    #[inline]
    pub(crate) fn asks_server(&self) -> bool {
        self.read_buffer().is_some_and(ReadBuffer::asks_server)
    }

    /// The peer of the connection, or the client that a PROXY protocol header or a gateway names instead; none for a Unix
    /// socket.
    #[inline]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The number of the listener that accepted the connection.
    #[inline]
    pub fn listener(&self) -> u32 {
        self.listener
    }

    /// Method and target for a log. A raw TCP connection, which has none, is named by its peer.
    pub(crate) fn line(&self) -> String {
        match (self.head(), self.peer) {
            (Some((head, bytes)), _) => {
                format!("{} {}", head.method.of(bytes).escape_ascii(), head.target.of(bytes).escape_ascii())
            }
            (None, Some(peer)) => format!("of {peer}"),
            (None, None) => "over a Unix socket".to_owned(),
        }
    }

    /// The request line of a request that is refused, as far as it has come, escaped; of a gateway protocol, method and target.
    #[cold]
    pub(crate) fn refused_line(&self) -> String {
        const MOST: usize = 256;
        match (self.head(), self.read_buffer()) {
            (Some((head, _)), _) if head.gateway.is_some() => self.line(),
            (_, Some(buffer)) => buffer.first_line(MOST).escape_ascii().to_string(),
            _ => String::new(),
        }
    }

    /// The request as messages name it; `line`: method and target, or its client.
    pub(crate) fn name(&self, ids: Option<RequestIds>, number: u64, line: String) -> RequestName {
        let head = self.head().filter(|(head, _)| head.length > 0);
        RequestName::new(ids, number, head, self.is_trusted, line)
    }

    /// The id of the request with this number.
    #[inline]
    pub(crate) fn id(&self, ids: &RequestIds, number: u64) -> RequestId<'_> {
        ids.of(number, self.head(), self.is_trusted)
    }

    /// What the access log says of this request. `started`: of [`AccessLog::start`].
    #[inline(always)]
    pub(crate) fn asked(&self, number: u64, started: u64) -> Asked {
        Asked {
            client: self.client().map(|(address, _)| address),
            number,
            started,
            kept: self.served,
            received: self.received(),
            is_trusted: self.is_from_trusted_proxy(),
        }
    }

    /// Bytes received of the request, without the framing of its body.
    pub(crate) fn received(&self) -> u64 {
        let Some(buffers) = &self.buffers else { return 0 };
        let head = match buffers.read_buffer.head.length {
            0 => buffers.read_buffer.unread().len(),
            length => length,
        };
        let body = buffers.body.as_ref().map_or(0, |body| body.received());
        head as u64 + body + buffers.streamed.as_ref().map_or(0, |streamed| streamed.received)
    }

    /// Name and port of the server for the client of the request, as in the environ.
    #[cold]
    pub(crate) fn server(&self, log: &AccessLog) -> (Vec<u8>, Vec<u8>) {
        let (name, port) = log.server(self.listener);
        let variable = |key: &[u8]| {
            let (head, bytes) = self.head()?;
            let variables = &head.gateway.as_ref()?.variables;
            variables.iter().find(|variable| variable.name.of(bytes) == key).map(|variable| variable.value.of(bytes))
        };
        let name = variable(b"SERVER_NAME").unwrap_or(name.as_bytes());
        let port = variable(b"SERVER_PORT").unwrap_or(port.as_bytes());
        let origin = self.origin();
        let host = origin.and_then(Origin::host).unwrap_or(name).to_vec();
        (
            host,
            origin.and_then(|origin| origin.port).map_or_else(|| port.to_vec(), |port| port.to_string().into_bytes()),
        )
    }

    /// The response, which is still empty.
    #[inline]
    pub(crate) fn response(&self) -> Response {
        match &self.buffers {
            Some(buffers) => {
                Response::new(&buffers.read_buffer.head, buffers.read_buffer.head_bytes(), buffers.out.len())
            }
            None => Response::to_refused(self.parser.dialect(), false, 0),
        }
    }

    pub(crate) fn take_body(&mut self) -> Body {
        self.buffers().body.take().map_or(Body::Empty, |body| body.take())
    }

    /// Whether the application receives the body while it runs.
    #[inline]
    pub(crate) fn is_streamed(&self) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| buffers.streamed.is_some())
    }

    /// Whether the application receives the body, and not all of it has come.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        self.is_streamed() && !self.parser.is_complete()
    }

    /// Whether a part of the request has arrived, and not all of it.
    pub(crate) fn is_mid_message(&self) -> bool {
        self.parser.is_mid_message(self.read_buffer())
    }

    /// Whether bytes behind the request have been received already.
    #[inline]
    pub(crate) fn has_unread(&self) -> bool {
        self.read_buffer().is_some_and(|buffer| !buffer.is_drained())
    }

    /// Those bytes.
    pub(crate) fn unread(&self) -> &[u8] {
        self.read_buffer().map_or(&[], ReadBuffer::unread)
    }

    /// Prepares for the next request: this one has been answered.
    #[inline]
    pub(super) fn begin_next(&mut self) {
        self.clear_origin();
        let buffers = self.buffers.get_or_insert_default();
        self.parser.next_message(&mut buffers.read_buffer);
        (buffers.body, buffers.streamed) = (None, None);
    }

    /// Caches the head, if the client sends several requests and few cached heads were in vain.
    #[inline]
    pub(crate) fn cache_head(&mut self, cached_heads: &Arc<AtomicUsize>) -> bool {
        let Some(buffers) = &self.buffers else { return false };
        if buffers.read_buffer.repeated || self.served == 0 || self.cache_misses > MAX_CACHE_MISSES {
            return false;
        }
        self.cache_misses += 1;
        self.cached_head = self.cached_head.take().or_else(|| CachedHead::new(cached_heads));
        let Some(cached_head) = &mut self.cached_head else { return false };
        cached_head.made = None;
        let caches_head = self.parser.remember(&buffers.read_buffer);
        self.cache_origin();
        caches_head
    }

    /// What was made of the head, if it is the cached one.
    #[inline]
    pub(crate) fn cached(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.read_buffer().filter(|buffer| buffer.repeated)?;
        self.cached_head.as_ref()?.made.as_deref()
    }

    /// Keeps what `make` returns with the cached head.
    #[inline]
    pub(crate) fn cache<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> Option<T>) {
        if let Some(cached_head) = &mut self.cached_head {
            cached_head.made = make().map(|made| Box::new(made) as _);
        }
    }
}
