//! Tests of the file cache: what it holds, and for how long.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use super::{Answer, RESOLVERS, Site};
use crate::folder::Resolver;
use crate::options::Options;
use crate::reply::Content;
use crate::static_root::{FileRequest, Lookup};
use crate::{Cache, Reply};

fn reply(found: Lookup) -> Reply {
    match found {
        Lookup::Reply(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// Whether the reply would come from memory.
fn is_cached(site: &mut Site, target: &str) -> bool {
    site.poll += 1;
    site.may_wait = false;
    let found = site.found("GET", target, "");
    site.may_wait = true;
    match found {
        Lookup::Reply(reply) => {
            assert!(!reply.content.is_on_disk(), "{reply:?}");
            true
        }
        Lookup::WouldBlock => false,
        Lookup::NotFound(reply) | Lookup::OutsideRoot(reply) | Lookup::Failed(reply, _) => panic!("{reply:?}"),
    }
}

#[test]
fn a_change_counts_in_the_next_poll() {
    for resolver in RESOLVERS {
        let mut site = Site::new(resolver);
        site.write("file.txt", "one");
        assert_eq!(site.get("/file.txt").text(), "one");
        assert!(is_cached(&mut site, "/file.txt"));
        site.write("file.txt", "three");
        assert_eq!(reply(site.found("GET", "/file.txt", "")).length, 3, "not in the same poll");
        assert_eq!(site.get("/file.txt").text(), "three");
        fs::remove_file(site.path("file.txt")).unwrap();
        assert_eq!(reply(site.found("GET", "/file.txt", "")).length, 5, "not in the same poll");
        assert_eq!(site.status("/file.txt"), 404);
        site.write("file.txt", "again");
        assert_eq!(site.get("/file.txt").text(), "again");
    }
}

#[test]
fn another_file_with_the_same_length_and_date_is_read() {
    let mut site = Site::new(Resolver::Kernel);
    let date = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (name, content) in [("file.txt", "one"), ("other", "two")] {
        site.write(name, content);
        fs::File::options().write(true).open(site.path(name)).unwrap().set_modified(date).unwrap();
    }
    assert_eq!(site.get("/file.txt").text(), "one");
    assert!(is_cached(&mut site, "/file.txt"));
    fs::rename(site.path("other"), site.path("file.txt")).unwrap();
    assert!(!is_cached(&mut site, "/file.txt"));
    assert_eq!(site.get("/file.txt").text(), "two");
}

#[test]
fn a_file_written_to_and_dated_back_is_read_again() {
    let mut site = Site::new(Resolver::Kernel);
    let date = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for content in ["one", "two", "six"] {
        site.write("file.txt", content);
        fs::File::options().write(true).open(site.path("file.txt")).unwrap().set_modified(date).unwrap();
        assert_eq!(site.get("/file.txt").text(), content);
        assert!(is_cached(&mut site, "/file.txt"));
        // The clock of the file system may tick slowly.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_file_that_has_just_changed_is_not_cached() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("file.txt", "one");
    let changed = fs::metadata(site.path("file.txt")).unwrap().ctime() as u64;
    for (now, kept) in [(changed, false), (changed + 2, false), (changed + 3, true)] {
        site.now = now;
        site.get("/file.txt");
        assert_eq!(is_cached(&mut site, "/file.txt"), kept, "after {} s", now - changed);
    }
}

#[test]
fn a_reply_from_the_disk_needs_a_request_that_may_wait() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("small.txt", "one");
    site.write("large.bin", vec![7; 100_000]);
    site.write("index.html", "index");
    for target in ["/small.txt", "/large.bin", "/nothing", "/"] {
        site.may_wait = false;
        assert!(matches!(site.found("GET", target, ""), Lookup::WouldBlock), "{target}");
        site.may_wait = true;
        site.get(target);
    }
    site.may_wait = false;
    assert_eq!(site.get("/small.txt").text(), "one");
    assert_eq!(site.get("/").text(), "index");
    assert!(matches!(site.found("GET", "/large.bin", ""), Lookup::WouldBlock), "the disk may block");
    assert!(matches!(site.found("GET", "/nothing", ""), Lookup::WouldBlock), "missing files are not cached");
    // These need no file system.
    assert_eq!(site.status("/../x"), 404);
    assert_eq!(site.ask("POST", "/small.txt", "").status, 405);
}

#[test]
fn a_large_file_stays_open() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("large.bin", vec![7; 100_000]);
    let mut file = || {
        site.poll += 1;
        match reply(site.found("GET", "/large.bin", "")).content {
            Content::File { file, .. } => file,
            other => panic!("{other:?}"),
        }
    };
    let first = file();
    assert!(Arc::ptr_eq(&first, &file()), "it was opened again");
    site.write("large.bin", vec![8; 100_001]);
    assert_eq!(site.get("/large.bin").content, vec![8; 100_001]);
}

#[test]
fn a_file_that_is_not_requested_is_closed() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("large.bin", vec![7; 100_000]);
    site.write("small.txt", "small");
    site.get("/small.txt");
    site.get("/large.bin");
    let file = match reply(site.found("GET", "/large.bin", "")).content {
        Content::File { file, .. } => Arc::downgrade(&file),
        other => panic!("{other:?}"),
    };
    for _ in 0..2 {
        assert!(file.upgrade().is_some());
        site.now += 10;
        site.get("/small.txt");
    }
    assert!(file.upgrade().is_none());
    assert!(is_cached(&mut site, "/small.txt"), "files in memory stay");
}

#[test]
fn the_memory_of_the_cache_is_bounded() {
    // Ten pages of 10,000 bytes.
    let cache = Arc::new(Cache::new(120_000));
    let mut site = Site::in_cache(Resolver::Kernel, Options::default(), cache);
    for number in 0..100 {
        site.write(&number.to_string(), vec![b'x'; 10_000]);
        site.get(&format!("/{number}"));
        // A file that is requested again and again is not evicted by files requested once.
        assert!(is_cached(&mut site, "/0"), "{number}");
    }
    let kept = (0..100).filter(|number| is_cached(&mut site, &format!("/{number}"))).count();
    assert!((8..=11).contains(&kept), "{kept} are kept");
}

#[test]
fn the_open_files_of_the_cache_are_bounded() {
    let site = Site::new(Resolver::Kernel);
    for number in 0..100 {
        site.write(&number.to_string(), vec![b'x'; 100_000]);
        site.found("GET", &format!("/{number}"), "");
    }
    let folder = fs::canonicalize(site.path("")).unwrap();
    let is_ours = |entry: &io::Result<fs::DirEntry>| {
        let target = entry.as_ref().ok().and_then(|entry| fs::read_link(entry.path()).ok());
        target.is_some_and(|target| target.parent() == Some(&folder))
    };
    let open = fs::read_dir("/proc/self/fd").unwrap().filter(is_ours).count();
    assert!((32..=64).contains(&open), "{open} are open");
}

#[test]
fn a_cache_of_size_0_holds_nothing() {
    let mut site = Site::in_cache(Resolver::Kernel, Options::default(), Arc::new(Cache::new(0)));
    site.write("small", "small");
    site.write("large", vec![7; 100_000]);
    for target in ["/small", "/large"] {
        assert_eq!(site.status(target), 200);
        assert!(!is_cached(&mut site, target), "{target}");
    }
}

#[test]
fn folders_with_one_cache_do_not_mix_their_files() {
    let cache = Arc::new(Cache::new(1 << 20));
    let mut one = Site::in_cache(Resolver::Kernel, Options::default(), Arc::clone(&cache));
    let mut other = Site::in_cache(Resolver::Kernel, Options::default(), cache);
    one.write("file", "one");
    other.write("file", "other");
    for _ in 0..2 {
        assert_eq!(one.get("/file").text(), "one");
        assert_eq!(other.get("/file").text(), "other");
    }
}

#[test]
fn a_moved_file_is_not_sent_from_memory() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("a/file", "content");
    site.get("/a/file");
    fs::rename(site.path("a"), site.path(".a")).unwrap();
    assert_eq!(site.status("/a/file"), 404);
}

#[test]
fn threads_share_the_cache() {
    let site = Site::in_cache(Resolver::Kernel, Options::default(), Arc::new(Cache::new(40_000)));
    for number in 0..20 {
        site.write(&number.to_string(), number.to_string().repeat(3000));
    }
    let ask = |number: u64, poll| {
        let found = site.with_request("GET", &format!("/{number}"), "", |request| {
            site.root.answer(&FileRequest { poll, ..*request })
        });
        assert_eq!(Answer::of(&reply(found)).text(), number.to_string().repeat(3000));
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || (0..500).for_each(|round| ask(round * (thread + 1) % 20, 1 + round / 3)));
        }
    });
}
