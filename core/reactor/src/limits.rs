//! Fixed sizes, counts and times (no options), each with its reason and the values of other servers.

/// Bytes of a request body that are gathered before they are written to its temporary file.
pub(crate) const SPOOLED_AT_ONCE: usize = 512 << 10;
/// Bytes of pieces that wait for others of the same response, and are sent with them.
pub(crate) const MOST_COALESCED: u64 = 128 << 10;
/// Bytes of responses that wait for a slow reader in memory; beyond, they go to a temporary file. waitress: 16 MiB.
pub(crate) const HIGH_WATER: usize = 1 << 20;
/// The same for all streams of a connection together; each of them may still have one piece.
pub(crate) const HIGH_WATER_OF_STREAMS: usize = 4 << 20;
/// Most bytes of an application's piece that are taken at once; before each, it is checked whether the client keeps up.
pub(crate) const PIECE: usize = 1 << 20;
/// Up to here a body is copied behind its head and sent with it; beyond, both are sent by one vectored call. Measured:
/// copying is cheaper below about 16 KiB.
pub(crate) const COPIED: usize = 16 << 10;
/// Up to here a body is compressed as a whole, so that its length is known before its head is sent; beyond, and for
/// applications that send in pieces, it is compressed piece by piece. Larger files of the core are not compressed at all.
pub(crate) const CODED_WHOLE: u64 = 1 << 20;
/// Bytes of a piece that are compressed at once; before each, it is checked whether the client keeps up.
pub(crate) const CODED_AT_ONCE: usize = 256 << 10;
/// Bytes of responses to pipelined requests that are gathered before they are sent.
pub(crate) const GATHERED: usize = 32 << 10;
/// Answers that are gathered, and requests of one connection that are run before others have their turn.
pub(crate) const BURST: u32 = 64;
/// Connections whose last head is cached, with the objects made from it: about 1.2 KiB each. A bound, because heads
/// hold credentials, and because idle connections shall be cheap.
pub(crate) const MAX_CACHED_HEADS: usize = 1_024;
/// Other heads that a client may send before remembering is given up on its connection.
pub(crate) const MAX_CACHE_MISSES: u8 = 3;
/// Bytes that are sent to one reader before the next reader has its turn. Several readers of one file are sent the same bytes
/// one after another: these still fit into the cache of the processor.
pub(crate) const SENT_AT_ONCE: usize = 256 << 10;
/// Bytes that are received from one client before others have their turn.
pub(crate) const RECEIVED_AT_ONCE: usize = 256 << 10;
/// Connections beyond `max_connections` that are answered with 503 at the same time; others wait to be accepted.
pub(crate) const REFUSED_AT_ONCE: usize = 128;
/// Milliseconds for which a new connection is at least read when we stop: its first request is probably under way.
pub(crate) const LAST_CHANCE: u64 = 1_000;
/// Milliseconds that a connection we want to close may go on sending, so that our answer is not lost to a reset.
/// nginx: 5 s (`lingering_timeout`).
pub(crate) const LINGER: u64 = 2_000;
