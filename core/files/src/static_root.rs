//! A published folder: opens it as its options say, and answers requests for its files.

use std::ffi::CString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use poorhttp_http::{ConditionalFields, Head, Validators, http_date};
use rustix::io::Errno;

use crate::cache::{Cache, Partition};
use crate::cached_file::CachedFile;
use crate::file_context::FileContext;
use crate::file_name::{FileName, c_string, encoded, hides_slash};
use crate::folder::{Folder, Resolver};
use crate::listing::Listing;
use crate::live_reload::{LiveReload, is_for_page};
use crate::multipart::is_multipart;
use crate::options::Options;
use crate::reply::Reply;
use crate::{error_reply, fields, navigation};

/// A request for a file of a static root.
#[derive(Clone, Copy, Debug)]
pub struct FileRequest<'a> {
    /// The head of the request.
    pub head: &'a Head,
    /// The bytes of the head, to which its spans refer.
    pub bytes: &'a [u8],
    /// The method: that of the head, or GET if a CGI program has redirected a POST to this file. Preconditions and ranges
    /// count only if both methods are GET or HEAD.
    pub method: &'a [u8],
    /// Path prefix under which the server is mounted (`SCRIPT_NAME`), decoded, without a trailing slash: for redirects.
    pub script: &'a [u8],
    /// The path of the request, decoded: for redirects, listings, and fields that depend on it.
    pub path: &'a [u8],
    /// Length of the route's prefix in `path`; a slash follows it, or nothing (the folder itself, without a slash).
    pub prefix: usize,
    /// Seconds since 1970.
    pub now: u64,
    /// Number of the current poll of the event loop. An entry that was compared with the file system in the same poll is
    /// not compared again.
    pub poll: u64,
    /// Whether the caller may block on the file system for more than a comparison.
    pub may_wait: bool,
}

impl<'a> FileRequest<'a> {
    /// The name below the folder.
    #[inline]
    fn name(&self) -> &'a [u8] {
        match self.path.get(self.prefix..) {
            // The target is `http://host`.
            Some(b"") if self.prefix == 0 => b"/",
            name => name.unwrap_or_default(),
        }
    }

    /// Whether the path is the client's, and not one that a CGI program has redirected to.
    fn is_as_sent(&self) -> bool {
        *self.head.decoded_path(self.bytes) == *self.path
    }

    /// The path as the client sent it; `None` if a program has redirected, or a gateway may have decoded it.
    fn raw_path(&self) -> Option<&'a [u8]> {
        let is_as_sent = self.head.gateway.is_none() && self.is_as_sent();
        is_as_sent.then(|| self.head.path().of(self.bytes))
    }

    /// Whether a slash of the path was percent-encoded: other programs may not take it for a separator.
    #[inline]
    fn hides_slash(&self) -> bool {
        // A path with percent-encoding is longer than the decoded one.
        let is_encoded = self.head.path().of(self.bytes).len() != self.path.len();
        is_encoded && self.raw_path().is_some_and(hides_slash)
    }

    /// Whether the request has preconditions or ranges that count.
    #[inline]
    fn is_conditional(&self, conditional: &ConditionalFields<'_>) -> bool {
        !conditional.is_plain() && is_read(self.method) && is_read(self.head.method.of(self.bytes))
    }

    /// The reply, if it can be sent without blocking or the caller may block.
    #[inline]
    fn unless_blocking(&self, reply: Reply) -> Lookup {
        match self.may_wait || !reply.content.is_on_disk() {
            true => Lookup::Reply(reply),
            false => Lookup::WouldBlock,
        }
    }
}

#[inline]
fn is_read(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD")
}

/// Outcome of a request to a static root.
#[derive(Debug)]
pub enum Lookup {
    /// A reply, or a refusal.
    Reply(Reply),
    /// There is no such file. The 404 is sent unless the application answers instead.
    NotFound(Reply),
    /// A refusal, because the file system has failed with this error.
    Failed(Reply, Errno),
    /// A symbolic link that is not followed, because it is absolute or leads out of the folder. Answered as `NotFound`.
    OutsideRoot(Reply),
    /// The reply needs the file system: repeat the request with `may_wait`.
    WouldBlock,
}

/// A published folder.
#[derive(Debug)]
pub struct StaticRoot {
    options: Options,
    cache: Arc<Cache>,
    /// Cache partition of files requested by their path.
    published: Partition,
    /// Cache partition of files that an application names.
    named: Partition,
    top: Mutex<Top>,
}

/// The open folder, and when its path was last checked.
#[derive(Debug)]
struct Top {
    folder: Arc<Folder>,
    /// Seconds since 1970.
    checked: u64,
}

impl StaticRoot {
    /// Opens the folder.
    pub fn new(options: Options, cache: Arc<Cache>) -> io::Result<Self> {
        Self::with(options, cache, Resolver::Kernel)
    }

    pub(crate) fn with(mut options: Options, cache: Arc<Cache>, resolver: Resolver) -> io::Result<Self> {
        fields::check(&options.fields)?;
        options.folder = std::path::absolute(&options.folder)?;
        let folder = Arc::new(Folder::open(&options.folder, resolver)?);
        let (published, named) = (cache.add_partition(), cache.add_partition());
        Ok(StaticRoot { options, cache, published, named, top: Mutex::new(Top { folder, checked: 0 }) })
    }

    /// Replies to a request by its path.
    pub fn answer(&self, request: &FileRequest<'_>) -> Lookup {
        if !is_read(request.method) {
            return Lookup::Reply(error_reply::not_allowed());
        }
        let name = request.name();
        if request.hides_slash() {
            return self.not_found(request);
        }
        let conditional = ConditionalFields::of(request.head, request.bytes);
        let reply = |entry: &CachedFile, may_wait: bool| {
            self.live_page(entry, request).or_else(|| reply(entry, &conditional, request, may_wait))
        };
        if let Some(reply) = self.cached(self.published, name, request, reply) {
            return reply.map_or(Lookup::WouldBlock, |reply| request.unless_blocking(reply));
        }
        let Some(name) = FileName::of(name, self.options.hidden) else { return self.not_found(request) };
        if !request.may_wait {
            return Lookup::WouldBlock;
        }
        self.find(name, request, reply).unwrap_or_else(|error| match error_reply::of(error) {
            Some(reply) => refusal(reply, error),
            None if error == Errno::XDEV => match self.not_found(request) {
                Lookup::NotFound(reply) => Lookup::OutsideRoot(reply),
                other => other,
            },
            None => self.fallback(request, reply).unwrap_or_else(|| self.not_found(request)),
        })
    }

    /// Absolute path of the folder.
    pub fn path(&self) -> &Path {
        &self.options.folder
    }

    /// The reply with a file that an application has named. Fields that it gives are not added. A refusal (status 400 and above)
    /// has all fields that it needs.
    pub fn send_named(&self, request: &FileRequest<'_>, given: &GivenFields<'_>) -> Lookup {
        let reply = |entry: &CachedFile, _: bool| Some(named_reply(entry, request, given));
        let name = request.name();
        let found = match FileName::of(name, true) {
            Some(checked) if !checked.is_folder => match self.cached(self.named, name, request, reply) {
                Some(reply) => Ok(reply),
                None => self.open(self.named, name, checked.to_c_string(), request).map(|entry| reply(&entry, true)),
            },
            _ => Err(Errno::NOENT),
        };
        match found {
            Ok(Some(reply)) => Lookup::Reply(reply),
            Ok(None) => Lookup::NotFound(error_reply::missing()),
            Err(error) => match error_reply::of(error) {
                Some(reply) => refusal(reply, error),
                None => Lookup::NotFound(error_reply::missing()),
            },
        }
    }

    /// The open folder. Once a second its path is checked, in case it was replaced, and unused files are closed.
    fn folder(&self, now: u64) -> Arc<Folder> {
        let mut top = self.top.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new_second = top.checked != now;
        top.checked = now;
        // If the path is gone, the old folder stays: it is empty.
        if is_new_second
            && !top.folder.is_at(&self.options.folder)
            && let Ok(folder) = Folder::open(&self.options.folder, top.folder.resolver)
        {
            top.folder = Arc::new(folder);
        }
        let folder = Arc::clone(&top.folder);
        drop(top);
        if is_new_second {
            self.cache.tidy(now);
        }
        folder
    }

    /// Calls `make` with the cached entry of a name, if the entry is still current. If `make` returns nothing, it is called a
    /// second time by a thread that may block.
    #[inline]
    fn cached<T>(
        &self,
        partition: Partition,
        name: &[u8],
        request: &FileRequest<'_>,
        make: impl Fn(&CachedFile, bool) -> Option<T>,
    ) -> Option<Option<T>> {
        let found = self.cache.with(partition, name, |entry| match entry.was_compared(request.poll) {
            true => make(entry, false).ok_or_else(|| Arc::clone(entry)),
            false => Err(Arc::clone(entry)),
        });
        match found? {
            Ok(made) => {
                self.cache.add_hit();
                Some(Some(made))
            }
            Err(entry) if entry.is_current(&self.folder(request.now), request.poll, request.now) => {
                // Otherwise it is called again.
                Some(make(&entry, request.may_wait).inspect(|_| self.cache.add_hit()))
            }
            Err(_) => {
                self.cache.remove(partition, name);
                None
            }
        }
    }

    /// Opens a file, and caches it under the requested name.
    fn open(
        &self,
        partition: Partition,
        name: &[u8],
        file: CString,
        request: &FileRequest<'_>,
    ) -> Result<Arc<CachedFile>, Errno> {
        let prefix = request.path.get(..request.prefix).unwrap_or_default();
        let path = [prefix, b"/", file.to_bytes()].concat();
        let published = partition == self.published;
        let context = FileContext {
            options: &self.options,
            path: &path,
            published,
            precompressed: self.options.precompressed && published,
            live: self.options.live.is_some() && published,
            small: self.cache.small(),
            now: request.now,
            poll: request.poll,
        };
        let entry = Arc::new(CachedFile::open(file, &self.folder(request.now), &context)?);
        self.cache.add_miss();
        if entry.is_settled(request.now) {
            self.cache.insert(partition, name, &entry);
        }
        Ok(entry)
    }

    /// Looks for a file, then an index, then makes a listing.
    fn find(
        &self,
        name: FileName<'_>,
        request: &FileRequest<'_>,
        reply: impl Fn(&CachedFile, bool) -> Option<Reply>,
    ) -> Result<Lookup, Errno> {
        let reply = |entry: &CachedFile| reply(entry, true).map_or(Lookup::WouldBlock, Lookup::Reply);
        if !name.is_folder && !name.is_top() {
            match self.open(self.published, request.name(), name.to_c_string(), request) {
                Ok(entry) => return Ok(reply(&entry)),
                Err(Errno::ISDIR) => {}
                Err(error) => return Err(error),
            }
        }
        let index = (!self.options.index.is_empty()).then(|| name.join(self.options.index.as_bytes()));
        let folder = self.folder(request.now);
        if !name.is_folder {
            return self.redirect(name, index, &folder, request);
        }
        if let Some(index) = index {
            match self.open(self.published, request.name(), index, request) {
                Ok(entry) => return Ok(reply(&entry)),
                Err(error) if error == Errno::XDEV || error != Errno::ISDIR && error_reply::of(error).is_some() => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        match self.options.listing {
            true => {
                let query = request.head.query().of(request.bytes);
                let listing = Listing { folder: &folder, name, path: request.path, query, now: request.now };
                let page = listing.page(&self.cache, self.published)?;
                Ok(Lookup::Reply(match self.live_for(request) {
                    Some(live) => live.added_to(page, request.script),
                    None => page,
                }))
            }
            false => Err(Errno::NOENT),
        }
    }

    /// Redirects to the name with a trailing slash, from which relative links count, if the folder has an index or a listing.
    fn redirect(
        &self,
        name: FileName<'_>,
        index: Option<CString>,
        folder: &Folder,
        request: &FileRequest<'_>,
    ) -> Result<Lookup, Errno> {
        let is_there = folder.stat_beneath(&name.to_c_string())?.is_folder();
        let has_index = || index.is_some_and(|index| folder.stat_beneath(&index).is_ok_and(|id| id.is_file()));
        match is_there && (self.options.listing || has_index()) {
            true => Ok(Lookup::Reply(redirection(request))),
            false => Err(Errno::NOENT),
        }
    }

    /// The script that is appended to pages, if this is a request for one.
    #[cold]
    fn live_for(&self, request: &FileRequest<'_>) -> Option<&LiveReload> {
        self.options.live.as_ref().filter(|_| is_for_page(request.method, request.head, request.bytes))
    }

    /// The reply with a page that reloads itself, if the request is for one.
    #[inline]
    fn live_page(&self, entry: &CachedFile, request: &FileRequest<'_>) -> Option<Reply> {
        // No call for each request of a server that is not one for development.
        self.options.live.as_ref().and_then(|_| Some(self.live_for(request)?.added_to(entry.page()?, request.script)))
    }

    /// The option's page in place of a missing file: a path of a single-page application, which its script shows. `None`: the
    /// request is not for a page, or there is no such file either.
    fn fallback(
        &self,
        request: &FileRequest<'_>,
        reply: impl Fn(&CachedFile, bool) -> Option<Reply>,
    ) -> Option<Lookup> {
        if self.options.fallback.is_empty() || !navigation::is_possible(request.path, request.head, request.bytes) {
            return None;
        }
        let key = ["/", &self.options.fallback].concat();
        let found = match self.cached(self.published, key.as_bytes(), request, &reply) {
            Some(found) => found,
            None => {
                let file = c_string(&[self.options.fallback.as_bytes()]);
                reply(&*self.open(self.published, key.as_bytes(), file, request).ok()?, true)
            }
        };
        Some(found.map_or(Lookup::WouldBlock, |reply| request.unless_blocking(navigation::varying(reply))))
    }

    /// The reply when there is no such file: the option's page, or a line of text.
    fn not_found(&self, request: &FileRequest<'_>) -> Lookup {
        match self.missing(request) {
            Lookup::NotFound(reply) if !self.options.fallback.is_empty() => {
                Lookup::NotFound(navigation::varying(reply))
            }
            lookup => lookup,
        }
    }

    /// The same, whatever the fallback is.
    fn missing(&self, request: &FileRequest<'_>) -> Lookup {
        if self.options.not_found.is_empty() {
            return Lookup::NotFound(error_reply::missing());
        }
        let key = ["/", &self.options.not_found].concat();
        let reply = |entry: &CachedFile, _: bool| {
            let page = self.live_page(entry, request).unwrap_or_else(|| entry.plain.whole());
            Some(entry.plain.instead(error_reply::NOT_FOUND).with_content_of(page))
        };
        let reply = match self.cached(self.published, key.as_bytes(), request, reply).flatten() {
            Some(reply) => reply,
            None if !request.may_wait => return Lookup::WouldBlock,
            None => {
                let file = c_string(&[self.options.not_found.as_bytes()]);
                let entry = self.open(self.published, key.as_bytes(), file, request);
                entry.ok().and_then(|entry| reply(&entry, true)).unwrap_or_else(error_reply::missing)
            }
        };
        match request.unless_blocking(reply) {
            Lookup::Reply(reply) => Lookup::NotFound(reply),
            later => later,
        }
    }
}

/// The reply to GET and HEAD. `None`: it has to be compressed, and `may_wait` is not set.
#[inline]
fn reply(
    entry: &CachedFile,
    conditional: &ConditionalFields<'_>,
    request: &FileRequest<'_>,
    may_wait: bool,
) -> Option<Reply> {
    let representation = entry.select(conditional, may_wait)?;
    if !request.is_conditional(conditional) {
        return Some(representation.whole());
    }
    Some(representation.conditional_reply(conditional, request.now).unwrap_or_else(|| {
        representation
            .ranges(conditional.ranges(representation.length, &representation.validators(), request.now), true)
    }))
}

/// The header fields that an application gives with a file that it names.
pub struct GivenFields<'a> {
    /// The value of a field; `None`: the application does not give it.
    pub value: &'a dyn Fn(&str) -> Option<&'a str>,
    /// Whether preconditions are evaluated although the application gives validators, as it has refused the request for them, or
    /// has evaluated its range. Otherwise they are left to the application.
    pub is_evaluated_anew: bool,
}

/// The reply with a file that an application has named.
fn named_reply(entry: &CachedFile, request: &FileRequest<'_>, given: &GivenFields<'_>) -> Reply {
    let representation = &entry.plain;
    let conditional = ConditionalFields::of(request.head, request.bytes);
    let reply = if !request.is_conditional(&conditional) {
        representation.whole()
    } else {
        let (etag, date) = ((given.value)("ETag"), (given.value)("Last-Modified"));
        let modified = date.map(|date| http_date(date.as_bytes()));
        let (file, own) = (representation.validators(), etag.is_some() || date.is_some());
        // Both kinds reach the client.
        let sent = Validators { etag: etag.unwrap_or(file.etag), modified: modified.unwrap_or(file.modified) };
        // Of a version that the application names, only its own validators are known to be of the same content.
        let strict = Validators { etag: etag.unwrap_or_default(), modified: modified.flatten() };
        let is_ours = !own || given.is_evaluated_anew;
        let instead = is_ours.then(|| representation.conditional_reply_by(&conditional, &sent, request.now)).flatten();
        instead.unwrap_or_else(|| {
            let validators = if own { &strict } else { &file };
            // Each part would have a Content-Type, but the one that the application gave is not among the fields of the file.
            let type_is_known = (given.value)("Content-Type").is_none();
            representation.ranges(conditional.ranges(representation.length, validators, request.now), type_is_known)
        })
    };
    match reply.status.as_bytes().first() {
        // The Content-Type of a multipart reply is never the application's, and Content-Range is about the file.
        Some(b'2' | b'3') => {
            // The type that the application gives is that of the bytes in the file.
            let is_given = |name: &str| {
                (given.value)(name).is_some() || name == "Content-Encoding" && (given.value)("Content-Type").is_some()
            };
            let ours = |name: &str| {
                is_given(name) && name != "Content-Range" && !(name == "Content-Type" && is_multipart(&reply))
            };
            Reply { fields: fields::without(&reply.fields, &ours), ..reply }
        }
        _ => reply,
    }
}

/// The refusal of a request for an error of the file system. Permissions are no failure.
fn refusal(reply: Reply, error: Errno) -> Lookup {
    match reply.status.starts_with('5') {
        true => Lookup::Failed(reply, error),
        false => Lookup::Reply(reply),
    }
}

/// A redirect to the path with a trailing slash.
fn redirection(request: &FileRequest<'_>) -> Reply {
    // `pchar` (RFC 3986 section 3.3) stays as it is.
    let path = encoded(&[request.script, request.path].concat(), b"/!$&'()*+,;=:@");
    // After a redirect by a CGI program, the query was meant for that program.
    let query = if request.is_as_sent() { request.head.query().of(request.bytes) } else { b"" };
    let mark = if query.is_empty() { "" } else { "?" };
    let query = String::from_utf8_lossy(query);
    // One leading slash only: `//` would begin a host name.
    let location = format!("Location: /{}/{mark}{query}\r\n", path.trim_start_matches('/'));
    error_reply::text("301 Moved Permanently", "the address of a folder ends with a slash", &location)
}
