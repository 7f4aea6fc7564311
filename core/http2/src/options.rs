//! Limits of a connection, each with its reason and the values of other servers.

use poorhttp_http::Limits;

use crate::frame::MOST;

/// What a connection is allowed, and what of it is announced to the client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Limits of a request, as in HTTP/1.1.
    pub limits: Limits,
    /// Streams at the same time, those included whose client has left and whose response is still being made
    /// (SETTINGS_MAX_CONCURRENT_STREAMS). RFC 9113 section 6.5.2 recommends at least 100. nginx: 128, h2o and Apache: 100, Go: 250,
    /// gunicorn: 100.
    pub streams: u32,
    /// Bytes of content that a client may send on a stream before the first of them is consumed (SETTINGS_INITIAL_WINDOW_SIZE), at
    /// least 65,535, because a client may send so much before it knows this setting. For a client that sends several uploads at once,
    /// it becomes 65,535; and one frame, if others are awaited while they fill the window of the connection.
    /// The window of a stream that is taken as it comes grows to half of that of the connection. Over a way of 100 ms, 256 KiB
    /// allow 2.6 MB in a second. nginx: 64 KiB, Go: 1 MiB, Apache: 64 KiB.
    pub stream_window: u32,
    /// The same on all streams of the connection together, at least 65,535. So much content of one connection may have to be kept, and a
    /// frame more for each stream if uploads that nobody reads have filled this window while another one is awaited. Go: 1 MiB, nginx: no
    /// limit.
    pub connection_window: u32,
    /// Bytes of the table of header fields that the client fills (SETTINGS_HEADER_TABLE_SIZE), at least the default of 4,096, which
    /// others have too.
    pub header_table: u32,
    /// Bytes of the table of header fields for responses; the client may offer less.
    pub response_table: u32,
    /// Streams that end early before the client must calm down: reset by it, refused, or reset because of its frames. Each complete
    /// response allows another one, and each second [`Options::RESETS_PER_SECOND`]. A browser that leaves a page resets what
    /// it has not got yet; nghttp2 bears 1,000 and 33 in a second, Go four times its streams.
    pub resets: u32,
    /// Frames that bring nothing, before the client must calm down: SETTINGS, PING, WINDOW_UPDATE, PRIORITY, PRIORITY_UPDATE, frames
    /// of unknown kinds and on closed streams, DATA without content. Each request and sent content allow more, and each second
    /// [`Options::FRAMES_PER_SECOND`]. nghttp2 bears 1,000 acknowledgements that wait, Go 10,000.
    pub frames: u32,
}

impl Options {
    /// Early ends that a second allows.
    pub const RESETS_PER_SECOND: u32 = 33;
    /// Bytes of an upload for which others wait a little longer.
    pub const GOES_ON: u64 = 64 << 10;
    /// Frames that bring nothing, which a second allows.
    pub const FRAMES_PER_SECOND: u32 = 100;
    /// The largest payload of a frame that is received: the smallest that every server must take (RFC 9113 section 4.2). Larger ones
    /// save 9 bytes in 16 KiB and let a stream hold up the others for longer.
    pub const FRAME: usize = 16_384;
    /// Bytes of output from which on no more content is taken: what is sent at once, so that an urgent stream waits for no more.
    pub const OUTPUT: usize = 64 << 10;
    /// Bytes of the memory of output that an idle connection keeps.
    pub(crate) const IDLE_OUTPUT: usize = 2 << 10;
    /// Bytes of output from which on a client that sends more gets an error. The embedding reads no more from
    /// [`Connection::wants_input`](crate::Connection::wants_input) on, so this is reached only if it does not ask.
    pub(crate) const UNSENT: usize = 1 << 20;
    /// Bytes of control frames that may wait for a client that does not read: more than [`Options::frames`] allows at once.
    pub(crate) const CONTROL_OUTPUT: usize = 64 << 10;
    /// The window of a connection, and of each stream, before any setting.
    pub(crate) const DEFAULT_WINDOW: u32 = 65_535;
    /// Bytes of a table of header fields before any setting (RFC 9113 section 6.5.2).
    pub(crate) const DEFAULT_TABLE: usize = 4096;
    /// Frames of one header block. Clients fill them but for the last, and 2 × 64 KiB fit into nine; nghttp2 takes 8, Python's `h2` 64.
    pub(crate) const BLOCK_FRAMES: u32 = 64;
    /// Ended streams that are remembered, to tell late frames from wrong ones.
    pub(crate) const REMEMBERED_STREAMS: usize = 128;
    /// Bytes of a header block, and of the text of its head, up to which it is recognized when it comes again.
    pub(crate) const REMEMBERED_BLOCK: usize = 128;
    pub(crate) const REMEMBERED_HEAD: usize = 2 << 10;
    /// Priorities that are remembered for streams that are yet to come.
    pub(crate) const EARLY_PRIORITIES: usize = 8;

    /// [`Options::stream_window`] within its bounds.
    pub(crate) fn stream_window(&self) -> u32 {
        self.stream_window.clamp(Self::DEFAULT_WINDOW, MOST)
    }

    /// [`Options::connection_window`] within its bounds.
    pub(crate) fn connection_window(&self) -> u32 {
        self.connection_window.clamp(Self::DEFAULT_WINDOW, MOST)
    }

    /// [`Options::header_table`] within its bounds.
    pub(crate) fn header_table(&self) -> u32 {
        self.header_table.clamp(Self::DEFAULT_TABLE as u32, MOST)
    }

    /// Bytes of a compressed header block. A list over the limits is refused with 431, and decoded up to here, so that the connection
    /// lasts.
    pub(crate) fn block(&self) -> usize {
        2 * self.limits.head.max(Self::FRAME)
    }

    /// Bytes by which a head may exceed four times its header block. Huffman's code saves less, and a head in which no field stands
    /// twice can have the whole table of the client, and a hundred fields of the static table.
    pub(crate) fn growth(&self) -> usize {
        self.header_table() as usize + self.limits.fields * 48 + (4 << 10)
    }

    /// The size of a header list as RFC 9113 section 6.5.2 counts it, for SETTINGS_MAX_HEADER_LIST_SIZE: no list that the limits allow
    /// is larger.
    pub(crate) fn header_list(&self) -> u32 {
        let fields = self.limits.fields + 4;
        u32::try_from(self.limits.head + 32 * fields).unwrap_or(u32::MAX)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            limits: Limits::default(),
            streams: 250,
            stream_window: 256 << 10,
            connection_window: 2 << 20,
            header_table: 4096,
            response_table: 1024,
            resets: 1_000,
            frames: 2_000,
        }
    }
}
