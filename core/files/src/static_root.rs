//! A folder that is published.

use std::ffi::CString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use poorhttp_http::{ConditionalFields, Head, Validators};
use rustix::io::Errno;

use crate::cache::{Cache, Place};
use crate::entry::{Entry, Making};
use crate::file_name::{Name, c_string, encoded, hides_slash};
use crate::folder::{Folder, Resolver};
use crate::listing::Listing;
use crate::live_reload::{Live, is_for_page};
use crate::multipart::is_multipart;
use crate::options::Options;
use crate::reply::Reply;
use crate::{error_reply, fields};

/// What is asked of a site.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The head of the request.
    pub head: &'a Head,
    /// The octets that it refers to.
    pub bytes: &'a [u8],
    /// The method to act upon: that of the head, but GET where a program has redirected a POST to here. Only if both are
    /// GET or HEAD do conditions and ranges of the head count.
    pub method: &'a [u8],
    /// The path below which the client knows us, decoded, without a slash at its end: for redirects.
    pub script: &'a [u8],
    /// The path of the request, decoded: for redirects, listings, and fields that depend on it.
    pub path: &'a [u8],
    /// Where in it the name below the folder begins: there is a slash, or the end (the folder itself, without a slash).
    pub prefix: usize,
    /// Seconds since 1970.
    pub now: u64,
    /// The number of the present look for requests; they count up. What has been compared with the file system in the same
    /// one need not be compared again.
    pub look: u64,
    /// Whether the file system may be asked for more than that: it may be slow.
    pub may_wait: bool,
}

impl<'a> Asked<'a> {
    /// The name below the folder.
    #[inline]
    fn name(&self) -> &'a [u8] {
        match self.path.get(self.prefix..) {
            // The target was `http://host`.
            Some(b"") if self.prefix == 0 => b"/",
            name => name.unwrap_or_default(),
        }
    }

    /// Whether the path that is asked for is the client's: a program may have redirected to another.
    fn is_as_sent(&self) -> bool {
        *self.head.decoded_path(self.bytes) == *self.path
    }

    /// The path as it was sent, if it is the one that is asked for. A web server may say it decoded.
    fn raw_path(&self) -> Option<&'a [u8]> {
        let is_as_sent = self.head.gateway.is_none() && self.is_as_sent();
        is_as_sent.then(|| self.head.path().of(self.bytes))
    }

    /// Whether a slash of the path was written in a way that others may take for something else.
    #[inline]
    fn hides_slash(&self) -> bool {
        // Whatever is percent-encoded is longer than what it stands for.
        let is_encoded = self.head.path().of(self.bytes).len() != self.path.len();
        is_encoded && self.raw_path().is_some_and(hides_slash)
    }

    #[inline]
    fn is_read(&self) -> bool {
        is_read(self.method)
    }

    /// Whether conditions and ranges count.
    #[inline]
    fn is_conditional(&self, conditional: &ConditionalFields<'_>) -> bool {
        !conditional.is_plain() && self.is_read() && is_read(self.head.method.of(self.bytes))
    }

    /// An answer, if it is in memory or may be waited for.
    #[inline]
    fn now_or_later(&self, reply: Reply) -> Found {
        match self.may_wait || !reply.content.is_on_disk() {
            true => Found::Reply(reply),
            false => Found::Later,
        }
    }
}

#[inline]
fn is_read(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD")
}

/// What a site has.
#[derive(Debug)]
pub enum Found {
    /// An answer, be it a refusal.
    Reply(Reply),
    /// There is no such file: 404, or whatever others may say; the answer that we would give.
    Missing(Reply),
    /// The same because of a symbolic link that is not followed: it is absolute, or leads out of the folder.
    Outside(Reply),
    /// To be asked again by somebody who may wait.
    Later,
}

/// A folder that is published, below one prefix.
#[derive(Debug)]
pub struct Site {
    options: Options,
    cache: Arc<Cache>,
    /// Of what is asked for by its path.
    published: Place,
    /// Of what an application names.
    named: Place,
    top: Mutex<Top>,
}

/// The folder as it was when it was last looked for.
#[derive(Debug)]
struct Top {
    folder: Arc<Folder>,
    looked_at: u64,
}

impl Site {
    /// Opens the folder.
    pub fn new(options: Options, cache: Arc<Cache>) -> io::Result<Self> {
        Self::with(options, cache, Resolver::Kernel)
    }

    pub(crate) fn with(mut options: Options, cache: Arc<Cache>, resolver: Resolver) -> io::Result<Self> {
        fields::check(&options.fields)?;
        options.folder = std::path::absolute(&options.folder)?;
        let folder = Arc::new(Folder::open(&options.folder, resolver)?);
        let (published, named) = (cache.place(), cache.place());
        Ok(Site { options, cache, published, named, top: Mutex::new(Top { folder, looked_at: 0 }) })
    }

    /// Answers a request.
    pub fn answer(&self, asked: &Asked<'_>) -> Found {
        if !asked.is_read() {
            return Found::Reply(error_reply::not_allowed());
        }
        let name = asked.name();
        if asked.hides_slash() {
            return self.missing(asked);
        }
        let conditional = ConditionalFields::of(asked.head, asked.bytes);
        let reply = |entry: &Entry| match self.live_page(entry, asked) {
            Some(page) => page,
            None => reply(entry, &conditional, asked),
        };
        if let Some(reply) = self.kept(self.published, name, asked, reply) {
            return asked.now_or_later(reply);
        }
        let Some(name) = Name::of(name, self.options.hidden) else { return self.missing(asked) };
        if !asked.may_wait {
            return Found::Later;
        }
        self.find(name, asked, reply).unwrap_or_else(|error| match error_reply::of(error) {
            Some(reply) => Found::Reply(reply),
            None => match self.missing(asked) {
                Found::Missing(reply) if error == Errno::XDEV => Found::Outside(reply),
                missing => missing,
            },
        })
    }

    /// The folder that is published.
    pub fn path(&self) -> &Path {
        &self.options.folder
    }

    /// Has a file sent that an application has named: `asked.path` is its name, and the rest is of the request that the
    /// application was asked for. Fields that are `given` by the application are not added. If it gave validators of its own,
    /// preconditions are its business. A refusal (status 400 and above) has all the fields that it needs.
    pub fn send_named(&self, asked: &Asked<'_>, given: &dyn Fn(&str) -> bool) -> Reply {
        let reply = |entry: &Entry| named_reply(entry, asked, given);
        let name = asked.name();
        let found = match Name::of(name, true) {
            Some(checked) if !checked.is_folder => match self.kept(self.named, name, asked, reply) {
                Some(reply) => Ok(reply),
                None => self.open(self.named, name, checked.to_c_string(), asked).map(|entry| reply(&entry)),
            },
            _ => Err(Errno::NOENT),
        };
        found.unwrap_or_else(|error| error_reply::of(error).unwrap_or_else(error_reply::missing))
    }

    /// The folder, which may have been replaced: that is looked for once in a second, what is in it in every look.
    fn folder(&self, now: u64) -> Arc<Folder> {
        let mut top = self.top.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new_second = top.looked_at != now;
        top.looked_at = now;
        // If there is none now, there is nothing in the old one either.
        if is_new_second
            && !top.folder.is_at(&self.options.folder)
            && let Ok(folder) = Folder::open(&self.options.folder, top.folder.resolver())
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

    /// What is made of an entry, if it is kept, and still true.
    #[inline]
    fn kept<T>(&self, place: Place, name: &[u8], asked: &Asked<'_>, make: impl Fn(&Entry) -> T) -> Option<T> {
        let found = self.cache.with(place, name, |entry| match entry.was_compared(asked.look) {
            true => Ok(make(entry)),
            false => Err(Arc::clone(entry)),
        });
        match found? {
            Ok(made) => Some(made),
            Err(entry) if entry.is_current(&self.folder(asked.now), asked.look, asked.now) => Some(make(&entry)),
            Err(_) => {
                self.cache.forget(place, name);
                None
            }
        }
    }

    /// Opens a file, and keeps it under the name that was asked for.
    fn open(&self, place: Place, name: &[u8], file: CString, asked: &Asked<'_>) -> Result<Arc<Entry>, Errno> {
        let prefix = asked.path.get(..asked.prefix).unwrap_or_default();
        let path = [prefix, b"/", file.to_bytes()].concat();
        let making = Making {
            options: &self.options,
            path: &path,
            precompressed: self.options.precompressed && place == self.published,
            live: self.options.live.is_some() && place == self.published,
            small: self.cache.small(),
            now: asked.now,
            look: asked.look,
        };
        let entry = Arc::new(Entry::open(file, &self.folder(asked.now), &making)?);
        if entry.is_settled(asked.now) {
            self.cache.keep(place, name, &entry);
        }
        Ok(entry)
    }

    /// Looks for a file, an index, a listing.
    fn find(&self, name: Name<'_>, asked: &Asked<'_>, reply: impl Fn(&Entry) -> Reply) -> Result<Found, Errno> {
        if !name.is_folder && !name.is_top() {
            match self.open(self.published, asked.name(), name.to_c_string(), asked) {
                Ok(entry) => return Ok(Found::Reply(reply(&entry))),
                Err(Errno::ISDIR) => {}
                Err(error) => return Err(error),
            }
        }
        let index = (!self.options.index.is_empty()).then(|| name.join(self.options.index.as_bytes()));
        let folder = self.folder(asked.now);
        if !name.is_folder {
            return self.redirect(name, index, &folder, asked);
        }
        if let Some(index) = index {
            match self.open(self.published, asked.name(), index, asked) {
                Ok(entry) => return Ok(Found::Reply(reply(&entry))),
                Err(error) if error == Errno::XDEV || error != Errno::ISDIR && error_reply::of(error).is_some() => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        match self.options.listing {
            true => {
                let query = asked.head.query().of(asked.bytes);
                let listing = Listing { folder: &folder, name, path: asked.path, query, now: asked.now };
                let page = listing.page(&self.cache, self.published)?;
                Ok(Found::Reply(match self.live_for(asked) {
                    Some(live) => live.added_to(page, asked.script),
                    None => page,
                }))
            }
            false => Ok(self.missing(asked)),
        }
    }

    /// Redirects to the name with a slash at its end, as relative links count from it, if there is anything to see.
    fn redirect(
        &self,
        name: Name<'_>,
        index: Option<CString>,
        folder: &Folder,
        asked: &Asked<'_>,
    ) -> Result<Found, Errno> {
        let is_there = folder.survey(&name.to_c_string())?.is_folder();
        let has_index = || index.is_some_and(|index| folder.survey(&index).is_ok_and(|stamp| stamp.is_file()));
        match is_there && (self.options.listing || has_index()) {
            true => Ok(Found::Reply(redirection(asked))),
            false => Err(Errno::NOENT),
        }
    }

    /// What is added to pages, if this is a request for one.
    fn live_for(&self, asked: &Asked<'_>) -> Option<&Live> {
        self.options.live.as_ref().filter(|_| is_for_page(asked.method, asked.head, asked.bytes))
    }

    /// The answer with a page that reloads itself, if it is to.
    fn live_page(&self, entry: &Entry, asked: &Asked<'_>) -> Option<Reply> {
        let live = self.live_for(asked)?;
        Some(live.added_to(entry.page()?, asked.script))
    }

    /// What is said when there is nothing.
    fn missing(&self, asked: &Asked<'_>) -> Found {
        if self.options.not_found.is_empty() {
            return Found::Missing(error_reply::missing());
        }
        let key = ["/", &self.options.not_found].concat();
        let reply = |entry: &Entry| {
            let page = self.live_page(entry, asked).unwrap_or_else(|| entry.plain().whole());
            entry.plain().instead(error_reply::NOT_FOUND).with_content_of(page)
        };
        let reply = match self.kept(self.published, key.as_bytes(), asked, reply) {
            Some(reply) => reply,
            None if !asked.may_wait => return Found::Later,
            None => {
                let file = c_string(&[self.options.not_found.as_bytes()]);
                let entry = self.open(self.published, key.as_bytes(), file, asked);
                entry.map_or_else(|_| error_reply::missing(), |entry| reply(&entry))
            }
        };
        match asked.now_or_later(reply) {
            Found::Reply(reply) => Found::Missing(reply),
            later => later,
        }
    }
}

/// The answer to GET and HEAD.
#[inline]
fn reply(entry: &Entry, conditional: &ConditionalFields<'_>, asked: &Asked<'_>) -> Reply {
    let variant = entry.select(conditional);
    if !asked.is_conditional(conditional) {
        return variant.whole();
    }
    variant
        .instead_of_content(conditional, asked.now)
        .unwrap_or_else(|| variant.ranges(conditional.ranges(variant.length, &variant.validators(), asked.now), true))
}

/// The answer with a file that an application has named.
fn named_reply(entry: &Entry, asked: &Asked<'_>, given: &dyn Fn(&str) -> bool) -> Reply {
    let variant = entry.plain();
    let conditional = ConditionalFields::of(asked.head, asked.bytes);
    let reply = if !asked.is_conditional(&conditional) {
        variant.whole()
    } else {
        let own = given("ETag") || given("Last-Modified");
        // What a client has a part of is then not known here, and it gets everything (RFC 9110 section 13.1.5).
        let validators = if own { Validators { etag: "", modified: u64::MAX } } else { variant.validators() };
        let instead = if own { None } else { variant.instead_of_content(&conditional, asked.now) };
        instead.unwrap_or_else(|| {
            // Each part would tell a type, but not which one the application gave.
            let type_is_known = !given("Content-Type");
            variant.ranges(conditional.ranges(variant.length, &validators, asked.now), type_is_known)
        })
    };
    match reply.status.as_bytes().first() {
        // That there are several parts is not for the application to say.
        Some(b'2' | b'3') => {
            let ours = |name: &str| given(name) && !(name == "Content-Type" && is_multipart(&reply));
            Reply { fields: fields::without(&reply.fields, &ours), ..reply }
        }
        _ => reply,
    }
}

/// To the path with a slash at its end.
fn redirection(asked: &Asked<'_>) -> Reply {
    // `pchar` (RFC 3986 section 3.3) stays as it is.
    let path = encoded(&[asked.script, asked.path].concat(), b"/!$&'()*+,;=:@");
    // A program may have redirected to here; then the query has been its own.
    let query = if asked.is_as_sent() { asked.head.query().of(asked.bytes) } else { b"" };
    let mark = if query.is_empty() { "" } else { "?" };
    let query = String::from_utf8_lossy(query);
    // One slash at the beginning: behind two of them stands the name of a host.
    let location = format!("Location: /{}/{mark}{query}\r\n", path.trim_start_matches('/'));
    error_reply::text("301 Moved Permanently", "a folder has a slash at its end", &location)
}
