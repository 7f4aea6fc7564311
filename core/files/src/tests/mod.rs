//! Tests of the replies of a published folder, with both ways to resolve names (openat2(2) and by segment).
//!
//! `tests/cases/static` has the cases that need no access to parts of the crate.

#[path = "../../../http/tests/receiver/mod.rs"]
mod receiver;

mod cache;
mod file_names;
mod hashed_names;
mod listing;
mod live_reload;
mod plain;
mod precompressed;
mod ranges;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Cache;
use crate::folder::Resolver;
use crate::options::Options;
use crate::reply::{Content, Part, Reply};
use crate::static_root::{FileRequest, Lookup, StaticRoot};

/// Both ways to open a file.
const RESOLVERS: [Resolver; 2] = [Resolver::Kernel, Resolver::Walk];

/// A published folder, and a folder around it that is not.
struct Site {
    around: tempfile::TempDir,
    root: StaticRoot,
    /// Seconds since 1970 of the next request.
    now: u64,
    poll: u64,
    may_wait: bool,
    prefix: &'static str,
}

/// A reply as a client receives it.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    fields: String,
    content: Vec<u8>,
}

impl Answer {
    fn of(reply: &Reply) -> Self {
        let mut content = Vec::new();
        match &reply.content {
            Content::Nothing => {}
            Content::Memory(bytes) => content.extend_from_slice(bytes),
            Content::File { file, at } => content = read(file, *at, reply.length),
            Content::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Memory(bytes, range) => content.extend_from_slice(&bytes[range.clone()]),
                        Part::File { file, at, length } => content.extend(read(file, *at, *length)),
                    }
                }
            }
        }
        if reply.status.starts_with("304") {
            assert!(content.is_empty(), "a 304 with content");
        } else {
            assert_eq!(content.len() as u64, reply.length, "{reply:?}");
        }
        let fields = String::from_utf8(reply.fields.to_vec()).unwrap();
        assert!(fields.is_empty() || fields.ends_with("\r\n"), "{fields:?}");
        Answer { status: reply.status[..3].parse().unwrap(), fields, content }
    }

    /// The value of a field.
    fn field(&self, name: &str) -> Option<&str> {
        let mut values =
            self.fields.lines().filter_map(|line| line.split_once(": ")).filter(|(other, _)| *other == name);
        let value = values.next().map(|(_, value)| value);
        assert!(values.next().is_none(), "more than one {name}: {}", self.fields);
        value
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.content).unwrap()
    }
}

fn read(file: &std::os::fd::OwnedFd, at: u64, length: u64) -> Vec<u8> {
    let file = fs::File::from(file.try_clone().unwrap());
    let mut content = vec![0; length as usize];
    file.read_exact_at(&mut content, at).unwrap();
    content
}

impl Site {
    fn new(resolver: Resolver) -> Self {
        Self::with(resolver, Options { index: "index.html".into(), charset: "utf-8".into(), ..Options::default() })
    }

    fn with(resolver: Resolver, options: Options) -> Self {
        Self::in_cache(resolver, options, Arc::new(Cache::new(1 << 20)))
    }

    fn in_cache(resolver: Resolver, options: Options, cache: Arc<Cache>) -> Self {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let root = StaticRoot::with(Options { folder, ..options }, cache, resolver).unwrap();
        Site { around, root, now: in_an_hour(), poll: 1, may_wait: true, prefix: "" }
    }

    /// Where a file of the published folder is.
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.around.path().join("folder").join(name)
    }

    /// Writes a file, and the folders that it is in.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    fn found(&self, method: &str, target: &str, fields: &str) -> Lookup {
        self.with_request(method, target, fields, |request| self.root.answer(request))
    }

    fn with_request<T>(&self, method: &str, target: &str, fields: &str, ask: impl FnOnce(&FileRequest<'_>) -> T) -> T {
        let message = message(method, target, fields);
        let path = message.head.decoded_path(&message.bytes);
        ask(&FileRequest {
            head: &message.head,
            bytes: &message.bytes,
            method: message.method(),
            script: b"",
            path: &path,
            prefix: self.prefix.len(),
            now: self.now,
            poll: self.poll,
            may_wait: self.may_wait,
        })
    }

    /// Calls `ask` with a request for another path than that of the request line, as after a redirect by a program.
    fn with_path<T>(&self, path: &[u8], ask: impl FnOnce(&FileRequest<'_>, &StaticRoot) -> T) -> T {
        self.with_request("GET", "/program?query", "", |request| ask(&FileRequest { path, ..*request }, &self.root))
    }

    /// The reply in a new poll.
    fn ask(&mut self, method: &str, target: &str, fields: &str) -> Answer {
        self.poll += 1;
        match self.found(method, target, fields) {
            Lookup::Reply(reply) | Lookup::NotFound(reply) | Lookup::OutsideRoot(reply) | Lookup::Failed(reply, _) => {
                Answer::of(&reply)
            }
            Lookup::WouldBlock => panic!("the request may wait"),
        }
    }

    fn get(&mut self, target: &str) -> Answer {
        self.ask("GET", target, "")
    }

    fn status(&mut self, target: &str) -> u16 {
        self.get(target).status
    }
}

fn message(method: &str, target: &str, fields: &str) -> receiver::Message {
    let mut receiver = receiver::Receiver::default();
    receiver.feed(format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n").as_bytes());
    receiver.outcome.messages.pop().expect("a valid request")
}

/// A time at which files written now are old enough to be cached.
fn in_an_hour() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600
}
