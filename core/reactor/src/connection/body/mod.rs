//! Bodies: of requests while they are received; of requests and responses, temporary files and the minimum rate.
//!
//! ```text
//! incoming.rs     buffer of a request body while it is received, and the complete body
//! spool.rs        thread that writes large request bodies to temporary files
//! streamed.rs     state of a body that the application receives while it runs
//! receive.rs      receives such a body
//! temp_file.rs    temporary files of request bodies and of unsent responses
//! throughput.rs   minimum rate of uploads and downloads
//! ```

pub(crate) mod incoming;
pub(crate) mod receive;
pub(crate) mod spool;
pub(crate) mod streamed;
pub(crate) mod temp_file;
pub(crate) mod throughput;
