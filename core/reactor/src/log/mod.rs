//! Access log, error log and slow log.
//!
//! ```text
//! entry.rs    access-log data of a response, kept until its last byte is sent
//! format.rs   access log formats
//! access.rs   access log: lines are collected and written in batches
//! writer.rs   thread that writes the access log to a file
//! slow.rs     requests slower than `slow_request`, with the phases of their time
//! error.rs    error log
//! sink.rs     file, pipe or syslog socket that a log is written to
//! ```

pub(crate) mod access;
pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod sink;
pub(crate) mod slow;
pub(crate) mod writer;
