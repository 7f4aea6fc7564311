//! Static files: from a request path to a reply, without sockets and Python; the list of the files.
//!
//! A [`StaticRoot`] is a published folder. It returns a [`Reply`]: status, fields, and content as bytes in memory or parts of
//! open files, which the reactor sends. A [`Cache`] that all roots share holds small files that were requested before.
//!
//! ```text
//! routes.rs          host and path prefix to published folder
//! options.rs         options of a published folder
//! static_root.rs     a published folder: from a path to a reply
//! file_name.rs       validation of file names
//! folder.rs          opens files below the folder only; walk.rs does so without openat2(2)
//! file_context.rs    what representations depend on besides the file
//! file_id.rs         device, inode, size and times: whether a file has changed
//! cached_file.rs     a file with its representations; precompressed.rs its compressed copies
//! compressed.rs      the content of a file in codings that were asked for
//! representation.rs  one form of a file, and the reply to conditions and ranges; multipart.rs several ranges
//! fields.rs          field lines; media_types.rs media types; hashed_name.rs names that hold a hash of the content
//! cache.rs           cache of entries
//! listing.rs         directory listings; html.rs HTML escaping
//! navigation.rs      requests for pages, which a fallback file answers
//! live_reload.rs     the live-reload script, appended to HTML pages
//! x_sendfile.rs      folders whose files an application may name
//! error_reply.rs     replies without a file
//! reply.rs           status, fields and content of a reply
//! ```

#![forbid(unsafe_code)]

mod cache;
mod cached_file;
mod compressed;
mod error_reply;
mod fields;
mod file_context;
mod file_id;
mod file_name;
mod folder;
mod hashed_name;
pub mod html;
mod listing;
mod live_reload;
mod media_types;
mod multipart;
mod navigation;
mod options;
mod precompressed;
mod reply;
mod representation;
mod routes;
mod static_root;
mod walk;
mod x_sendfile;

pub use cache::{Cache, CacheCounts};
pub use live_reload::LiveReload;
pub use options::Options;
pub use reply::{Content, Part, Reply};
pub use routes::{Routes, StaticRoute};
pub use static_root::{FileRequest, GivenFields, Lookup, StaticRoot};
pub use x_sendfile::{SendfileRoots, SendfileTarget};

#[cfg(test)]
mod tests;
