//! Directory listings in HTML.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use rustix::fs::{AtFlags, Dir, fstat, statat};
use rustix::io::Errno;

use crate::cache::{Cache, Partition};
use crate::file_id::FileId;
use crate::file_name::{FileName, encoded};
use crate::folder::Folder;
use crate::html::push_escaped;
use crate::reply::{Content, Reply};

/// Files on a page; each costs a system call.
const MOST: usize = 10_000;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}\
h1{font-size:1.25rem;overflow-wrap:anywhere}\
table{width:100%;border-collapse:collapse}\
th,td{padding:.4rem .5rem;text-align:left;border-bottom:1px solid #8884}\
td:first-child{overflow-wrap:anywhere}\
th:nth-child(n+2),td:nth-child(n+2){text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
tbody tr:hover{background:#8882}\
@media(max-width:30rem){body{padding:.5rem}th,td{padding:.4rem .25rem}td:nth-child(3){font-size:.8rem;white-space:normal}}";

/// Column that a page is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Name,
    Size,
    Time,
}

impl Key {
    const ALL: [(Key, &'static str, &'static str); 3] =
        [(Key::Name, "name", "Name"), (Key::Size, "size", "Size"), (Key::Time, "time", "Changed (UTC)")];
}

/// Column and direction that a page is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Order {
    key: Key,
    descending: bool,
}

impl Order {
    /// Parses `sort=size&order=desc`; unknown values count as absent.
    fn of(query: &[u8]) -> Self {
        let mut order = Order { key: Key::Name, descending: false };
        for part in query.split(|&byte| byte == b'&') {
            if let Some(value) = part.strip_prefix(b"sort=") {
                let found = Key::ALL.iter().find(|(_, name, _)| name.as_bytes() == value);
                order.key = found.map_or(Key::Name, |(key, ..)| *key);
            } else if let Some(value) = part.strip_prefix(b"order=") {
                order.descending = value == b"desc";
            }
        }
        order
    }

    /// Folders come first, whatever the order.
    fn compare(self, one: &Row, other: &Row) -> Ordering {
        let by_name = || one.folded.cmp(&other.folded).then_with(|| one.name.cmp(&other.name));
        let ordering = match self.key {
            Key::Name => by_name(),
            Key::Size => one.size().cmp(&other.size()).then_with(by_name),
            Key::Time => one.id.modified.cmp(&other.id.modified).then_with(by_name),
        };
        let ordering = if self.descending { ordering.reverse() } else { ordering };
        other.id.is_folder().cmp(&one.id.is_folder()).then(ordering)
    }
}

/// A row of the table.
struct Row {
    name: Vec<u8>,
    /// In lower case, for sorting.
    folded: Vec<u8>,
    id: FileId,
}

impl Row {
    fn size(&self) -> u64 {
        if self.id.is_folder() { 0 } else { self.id.size }
    }
}

/// Listings made in one second. They are not used in the next, as sizes and dates of files change without a change of their
/// folder.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    /// Seconds since 1970.
    made: u64,
    /// Total bytes of the pages.
    weight: usize,
    pages: FxHashMap<ListingKey, (FileId, Arc<[u8]>)>,
}

/// Static root, request path of the folder, and order.
type ListingKey = (Partition, Vec<u8>, Order);

impl Listings {
    fn find(&self, cache_key: &ListingKey, id: &FileId, now: u64) -> Option<Arc<[u8]>> {
        let (then, page) = self.pages.get(cache_key)?;
        (self.made == now && then == id).then(|| Arc::clone(page))
    }

    /// Keeps a listing, if there is room for it within `most` bytes.
    fn keep(&mut self, cache_key: ListingKey, id: FileId, page: &Arc<[u8]>, now: u64, most: usize) {
        if self.weight + page.len() > most {
            return;
        }
        self.made = now;
        self.weight += page.len();
        if let Some((_, before)) = self.pages.insert(cache_key, (id, Arc::clone(page))) {
            self.weight -= before.len();
        }
    }

    /// Removes the listings of an earlier second, which the caller drops without the lock.
    pub(crate) fn outdated(&mut self, now: u64) -> Self {
        if self.made == now { Self::default() } else { std::mem::take(self) }
    }
}

/// A request for a listing.
pub(crate) struct Listing<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) name: FileName<'a>,
    /// Decoded request path of the folder.
    pub(crate) path: &'a [u8],
    pub(crate) query: &'a [u8],
    /// Seconds since 1970.
    pub(crate) now: u64,
}

impl Listing<'_> {
    /// The reply with the names in a folder. It is cached for the rest of the second, unless the folder changed so recently
    /// that its next change may not show in its times.
    pub(crate) fn page(&self, cache: &Cache, partition: Partition) -> Result<Reply, Errno> {
        let order = Order::of(self.query);
        let cache_key = (partition, self.path.to_vec(), order);
        let id = self.folder.stat_beneath(&self.name.to_c_string())?;
        let gone = cache.listings().outdated(self.now);
        drop(gone);
        let kept = cache.listings().find(&cache_key, &id, self.now);
        if let Some(page) = kept {
            return Ok(reply(page));
        }
        let (mut rows, complete, id) = read(self.folder, self.name)?;
        rows.sort_unstable_by(|one, other| order.compare(one, other));
        let page: Arc<[u8]> = Arc::from(html(&rows, complete, order, self.name, self.path).into_bytes());
        if !id.is_recent(self.now) {
            cache.listings().keep(cache_key, id, &page, self.now, cache.size);
        }
        Ok(reply(page))
    }
}

fn reply(page: Arc<[u8]>) -> Reply {
    Reply {
        status: "200 OK".into(),
        fields: Arc::from(&b"Content-Type: text/html; charset=utf-8\r\nCache-Control: no-cache\r\n"[..]),
        length: page.len() as u64,
        content: Content::Memory(page),
    }
}

/// The files and folders that would be served, whether they are all, and the folder's identity before they were read.
fn read(folder: &Folder, name: FileName<'_>) -> Result<(Vec<Row>, bool, FileId), Errno> {
    let here = folder.folder(&name.to_c_string())?;
    let before = FileId::of(&fstat(&here)?);
    let mut rows = Vec::new();
    for entry in Dir::read_from(&here)? {
        let entry = entry?;
        let file = entry.file_name();
        let bytes = file.to_bytes();
        // Names with a backslash or a line end are never served.
        if bytes.starts_with(b".") || memchr::memchr3(b'\\', b'\r', b'\n', bytes).is_some() {
            continue;
        }
        if rows.len() == MOST {
            return Ok((rows, false, before));
        }
        let id = match statat(&here, file, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT) {
            // A link is listed as its target, if that is below the folder.
            Ok(stat) if FileId::of(&stat).is_link() => folder.stat_beneath(&name.join(bytes)),
            found => found.map(|stat| FileId::of(&stat)),
        };
        match id {
            Ok(id) if id.is_file() || id.is_folder() => {
                rows.push(Row { name: bytes.to_vec(), folded: bytes.to_ascii_lowercase(), id });
            }
            // A device, a socket, a dangling link, or just removed.
            Ok(_) | Err(_) => {}
        }
    }
    Ok((rows, true, before))
}

fn html(rows: &[Row], complete: bool, order: Order, name: FileName<'_>, path: &[u8]) -> String {
    let title = escaped(path);
    let mut page = String::with_capacity(2048 + 192 * rows.len());
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<table>\n<thead>\n<tr>"
    );
    for (key, value, label) in Key::ALL {
        let chosen = order.key == key;
        let (next, sorted, arrow) = match (chosen, order.descending) {
            (false, _) => ("asc", "", ""),
            (true, false) => ("desc", " aria-sort=\"ascending\"", " ↑"),
            (true, true) => ("asc", " aria-sort=\"descending\"", " ↓"),
        };
        let _ = write!(page, "<th{sorted}><a href=\"?sort={value}&amp;order={next}\">{label}</a>{arrow}</th>");
    }
    page.push_str("</tr>\n</thead>\n<tbody>\n");
    if !name.is_top() {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for row in rows {
        let slash = if row.id.is_folder() { "/" } else { "" };
        let size = if row.id.is_folder() { String::new() } else { size(row.id.size) };
        let (shown, time) = (escaped(&row.name), time(row.id.modified_since_1970()));
        let link = encoded(&row.name, b"");
        let _ = writeln!(
            page,
            "<tr><td><a href=\"{link}{slash}\">{shown}{slash}</a></td><td>{size}</td><td>{time}</td></tr>"
        );
    }
    page.push_str("</tbody>\n</table>\n");
    if !complete {
        let _ = writeln!(page, "<p>There are more: these are {MOST} of them.</p>");
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// Text for HTML, with U+FFFD for control characters and bytes that are not UTF-8.
fn escaped(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    push_escaped(&mut escaped, &String::from_utf8_lossy(text).replace(char::is_control, "\u{fffd}"));
    escaped
}

/// `1.5 KiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut rest = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be rounded to 1024.0.
    while rest >= 1023.95 && unit + 1 < UNITS.len() {
        rest /= 1024.0;
        unit += 1;
    }
    format!("{rest:.1} {}", UNITS[unit])
}

/// `20 Nov 2026 18:44`, cut out of an HTTP date.
fn time(seconds: u64) -> String {
    // The last second of the year 9999.
    let seconds = seconds.min(253_402_300_799);
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    date.get(5..22).unwrap_or_default().to_owned()
}
