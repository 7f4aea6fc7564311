//! What is kept, and how long.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use super::{RESOLVERS, Stage, answer_of};
use crate::folder::Resolver;
use crate::options::Options;
use crate::reply::Content;
use crate::static_root::{Lookup, StaticRoot};
use crate::{Cache, Reply};

fn reply(found: Lookup) -> Reply {
    match found {
        Lookup::Reply(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// Whether a request would be answered from memory.
fn is_kept(stage: &mut Stage, target: &str) -> bool {
    stage.poll += 1;
    stage.may_wait = false;
    let found = stage.found("GET", target, "");
    stage.may_wait = true;
    match found {
        Lookup::Reply(reply) => {
            assert!(!reply.content.is_on_disk(), "{reply:?}");
            true
        }
        Lookup::WouldBlock => false,
        Lookup::NotFound(reply) | Lookup::OutsideRoot(reply) => panic!("{reply:?}"),
    }
}

#[test]
fn a_change_counts_in_the_next_look() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("file.txt", "one");
        assert_eq!(stage.get("/file.txt").text(), "one");
        assert!(is_kept(&mut stage, "/file.txt"));
        stage.write("file.txt", "three");
        assert_eq!(reply(stage.found("GET", "/file.txt", "")).length, 3, "not in the same poll");
        assert_eq!(stage.get("/file.txt").text(), "three");
        fs::remove_file(stage.path("file.txt")).unwrap();
        assert_eq!(reply(stage.found("GET", "/file.txt", "")).length, 5, "not in the same poll");
        assert_eq!(stage.status("/file.txt"), 404);
        stage.write("file.txt", "again");
        assert_eq!(stage.get("/file.txt").text(), "again");
    }
}

#[test]
fn another_file_with_the_same_length_and_date_is_another() {
    let mut stage = Stage::new(Resolver::Kernel);
    let date = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (name, content) in [("file.txt", "one"), ("other", "two")] {
        stage.write(name, content);
        fs::File::options().write(true).open(stage.path(name)).unwrap().set_modified(date).unwrap();
    }
    assert_eq!(stage.get("/file.txt").text(), "one");
    assert!(is_kept(&mut stage, "/file.txt"));
    fs::rename(stage.path("other"), stage.path("file.txt")).unwrap();
    assert!(!is_kept(&mut stage, "/file.txt"));
    assert_eq!(stage.get("/file.txt").text(), "two");
}

#[test]
fn a_file_that_is_written_to_and_dated_back_is_another() {
    let mut stage = Stage::new(Resolver::Kernel);
    let date = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for content in ["one", "two", "six"] {
        stage.write("file.txt", content);
        fs::File::options().write(true).open(stage.path("file.txt")).unwrap().set_modified(date).unwrap();
        assert_eq!(stage.get("/file.txt").text(), content);
        assert!(is_kept(&mut stage, "/file.txt"));
        // The clock of the file system may tick slowly.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_has_just_changed_is_not_kept() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("file.txt", "one");
    let changed = fs::metadata(stage.path("file.txt")).unwrap().ctime() as u64;
    for (now, kept) in [(changed, false), (changed + 2, false), (changed + 3, true)] {
        stage.now = now;
        stage.get("/file.txt");
        assert_eq!(is_kept(&mut stage, "/file.txt"), kept, "after {} s", now - changed);
    }
}

#[test]
fn what_is_not_in_memory_is_left_to_who_may_wait() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("small.txt", "one");
    stage.write("large.bin", vec![7; 100_000]);
    stage.write("index.html", "index");
    for target in ["/small.txt", "/large.bin", "/nothing", "/"] {
        stage.may_wait = false;
        assert!(matches!(stage.found("GET", target, ""), Lookup::WouldBlock), "{target}");
        stage.may_wait = true;
        stage.get(target);
    }
    stage.may_wait = false;
    assert_eq!(stage.get("/small.txt").text(), "one");
    assert_eq!(stage.get("/").text(), "index");
    assert!(matches!(stage.found("GET", "/large.bin", ""), Lookup::WouldBlock), "the disk is waited for");
    assert!(matches!(stage.found("GET", "/nothing", ""), Lookup::WouldBlock), "what is not there is not remembered");
    // Nobody has to look for that.
    assert_eq!(stage.status("/../x"), 404);
    assert_eq!(stage.ask("POST", "/small.txt", "").status, 405);
}

#[test]
fn a_large_file_stays_open() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("large.bin", vec![7; 100_000]);
    let mut file = || {
        stage.poll += 1;
        match reply(stage.found("GET", "/large.bin", "")).content {
            Content::File { file, .. } => file,
            other => panic!("{other:?}"),
        }
    };
    let first = file();
    assert!(Arc::ptr_eq(&first, &file()), "it was opened again");
    stage.write("large.bin", vec![8; 100_001]);
    assert_eq!(stage.get("/large.bin").content, vec![8; 100_001]);
}

#[test]
fn a_file_that_nobody_asks_for_is_closed() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("large.bin", vec![7; 100_000]);
    stage.write("small.txt", "small");
    stage.get("/small.txt");
    stage.get("/large.bin");
    let file = match reply(stage.found("GET", "/large.bin", "")).content {
        Content::File { file, .. } => Arc::downgrade(&file),
        other => panic!("{other:?}"),
    };
    for _ in 0..2 {
        assert!(file.upgrade().is_some());
        stage.now += 10;
        stage.get("/small.txt");
    }
    assert!(file.upgrade().is_none());
    assert!(is_kept(&mut stage, "/small.txt"), "what is in memory holds nothing up");
}

#[test]
fn its_memory_is_bounded() {
    // Ten pages of 10,000 bytes.
    let cache = Arc::new(Cache::new(120_000));
    let mut stage = Stage::in_cache(Resolver::Kernel, Options::default(), cache);
    for number in 0..100 {
        stage.write(&number.to_string(), vec![b'x'; 10_000]);
        stage.get(&format!("/{number}"));
        // One that everybody wants is not pushed out by those that nobody wants twice.
        assert!(is_kept(&mut stage, "/0"), "{number}");
    }
    let kept = (0..100).filter(|number| is_kept(&mut stage, &format!("/{number}"))).count();
    assert!((8..=11).contains(&kept), "{kept} are kept");
}

#[test]
fn its_open_files_are_bounded() {
    let stage = Stage::new(Resolver::Kernel);
    for number in 0..100 {
        stage.write(&number.to_string(), vec![b'x'; 100_000]);
        stage.found("GET", &format!("/{number}"), "");
    }
    let folder = fs::canonicalize(stage.path("")).unwrap();
    let is_ours = |entry: &io::Result<fs::DirEntry>| {
        let target = entry.as_ref().ok().and_then(|entry| fs::read_link(entry.path()).ok());
        target.is_some_and(|target| target.parent() == Some(&folder))
    };
    let open = fs::read_dir("/proc/self/fd").unwrap().filter(is_ours).count();
    assert!((32..=64).contains(&open), "{open} are open");
}

#[test]
fn a_cache_of_nothing_keeps_nothing() {
    let mut stage = Stage::in_cache(Resolver::Kernel, Options::default(), Arc::new(Cache::new(0)));
    stage.write("small", "small");
    stage.write("large", vec![7; 100_000]);
    for target in ["/small", "/large"] {
        assert_eq!(stage.status(target), 200);
        assert!(!is_kept(&mut stage, target), "{target}");
    }
}

#[test]
fn sites_do_not_see_each_other() {
    let cache = Arc::new(Cache::new(1 << 20));
    let mut one = Stage::in_cache(Resolver::Kernel, Options::default(), Arc::clone(&cache));
    let mut other = Stage::in_cache(Resolver::Kernel, Options::default(), cache);
    one.write("file", "one");
    other.write("file", "other");
    for _ in 0..2 {
        assert_eq!(one.get("/file").text(), "one");
        assert_eq!(other.get("/file").text(), "other");
    }
}

#[test]
fn a_file_that_nobody_may_read_any_more_is_not_answered_from_memory() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("a/file", "content");
    stage.get("/a/file");
    fs::rename(stage.path("a"), stage.path(".a")).unwrap();
    assert_eq!(stage.status("/a/file"), 404);
}

#[test]
fn threads_share_it() {
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().to_owned();
    for number in 0..20 {
        fs::write(folder.join(number.to_string()), number.to_string().repeat(3000)).unwrap();
    }
    let cache = Arc::new(Cache::new(40_000));
    let root = StaticRoot::new(Options { folder, ..Options::default() }, cache).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let root = &root;
            scope.spawn(move || {
                for round in 0..500 {
                    let number = (round * (thread + 1)) % 20;
                    let answer = answer_of(root, &format!("/{number}"), 1 + round / 3);
                    assert_eq!(answer.text(), number.to_string().repeat(3000));
                }
            });
        }
    });
}
