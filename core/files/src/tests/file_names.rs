//! Tests that every file name resolves below the published folder, and none outside of it.
//!
//! The cases of `tests/cases/static/paths.txt` have the rest.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, mknodat};
use rustix::io::Errno;

use super::{RESOLVERS, Site};
use crate::file_id::FileId;
use crate::file_name::FileName;
use crate::folder::{Folder, Resolver};
use crate::options::Options;
use crate::static_root::Lookup;
use crate::walk::walk;

#[test]
fn nothing_outside_of_the_folder_is_found() {
    for resolver in RESOLVERS {
        let mut site = Site::new(resolver);
        fs::write(site.around.path().join("secret"), "secret").unwrap();
        site.write("a/inside", "inside");
        site.link("../secret", "escape");
        site.link("../../secret", "a/escape");
        site.link(site.around.path().join("secret"), "absolute");
        site.link("..", "up");
        // A link that leaves the folder and enters it again is refused too.
        site.link("../../folder/a/inside", "a/again");
        site.link("/proc/self/fd/0", "magic");
        site.link("loop", "loop");
        site.link("nothing", "dangling");
        for target in [
            "/escape",
            "/a/escape",
            "/absolute",
            "/up",
            "/up/",
            "/up/secret",
            "/up/folder/a/inside",
            "/a/again",
            "/magic",
            "/loop",
            "/loop/x",
            "/dangling",
        ] {
            assert_eq!(site.status(target), 404, "{target} {resolver:?}");
            // A link to an existing file outside is told apart, for the log.
            let is_outside = !matches!(target, "/magic" | "/loop" | "/loop/x" | "/dangling" | "/up/");
            if is_outside || target == "/dangling" {
                let found = site.found("GET", target, "");
                assert_eq!(matches!(found, Lookup::OutsideRoot(_)), is_outside, "{target} {resolver:?}");
            }
        }
    }
}

#[test]
fn at_most_40_links_are_followed() {
    for resolver in RESOLVERS {
        let mut site = Site::new(resolver);
        site.write("0", "here");
        for number in 1..=41 {
            site.link((number - 1).to_string(), &number.to_string());
        }
        assert_eq!(site.status("/40"), 200, "{resolver:?}");
        assert_eq!(site.status("/41"), 404, "{resolver:?}");
        let folder = Folder::open(&site.path(""), resolver).unwrap();
        assert!(folder.stat_beneath(c"40").is_ok());
        assert_eq!(folder.stat_beneath(c"41").err(), Some(Errno::LOOP), "{resolver:?}");
    }
}

#[test]
fn both_resolvers_find_the_same() {
    let site = Site::new(Resolver::Kernel);
    site.write("a/b/file", "");
    for (target, name) in [
        ("..", "a/up"),
        ("../..", "a/out"),
        ("b", "a/link"),
        ("b/", "a/slash"),
        ("b/file", "a/deep"),
        ("b/file/", "a/wrong"),
        ("/", "a/root"),
        ("../a/../a/link/../b/./file", "a/zigzag"),
        ("out/folder/a", "a/around"),
        ("link/../up/a/up/a/file", "a/nothing"),
        ("self", "a/self"),
    ] {
        site.link(target, name);
    }
    let folder = site.path("");
    let [kernel, walking] = RESOLVERS.map(|resolver| Folder::open(&folder, resolver).unwrap());
    let top = fs::File::open(&folder).unwrap().into();
    // Called directly, so that the kernel is not compared with itself.
    let walk = |name: &CString| {
        walk(&top, name, OFlags::PATH | OFlags::CLOEXEC).and_then(|file| Ok(FileId::of(&fstat(file)?)))
    };
    let steps = [
        "a", "b", "file", "..", ".", "up", "out", "link", "slash", "deep", "wrong", "root", "zigzag", "around", "self",
    ];
    let mut names: Vec<String> = vec![".".into()];
    for first in steps {
        names.push(first.into());
        for second in steps {
            names.push(format!("a/{first}/{second}"));
            names.extend(steps.map(|third| format!("{first}/{second}/{third}")));
        }
    }
    let mut found = 0;
    for name in names {
        let name = CString::new(name).unwrap();
        let expected = kernel.stat_beneath(&name);
        found += usize::from(expected.is_ok());
        assert_eq!(walk(&name), expected, "{name:?}");
        assert_eq!(walking.stat_beneath(&name), expected, "{name:?}");
        let opened = |folder: &Folder| folder.file(&name).map(|(_, id)| id);
        assert_eq!(opened(&walking), opened(&kernel), "{name:?}");
        assert_eq!(walking.folder(&name).err(), kernel.folder(&name).err(), "{name:?}");
    }
    assert!(found > 50, "{found}");
}

#[test]
fn only_files_are_opened() {
    for resolver in RESOLVERS {
        let site = Site::new(resolver);
        let top = fs::File::open(site.path("")).unwrap();
        mknodat(&top, "fifo", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let folder = Folder::open(&site.path(""), resolver).unwrap();
        assert!(folder.stat_beneath(c"fifo").is_ok_and(|id| !id.is_file()));
        assert_eq!(folder.file(c"fifo").err(), Some(Errno::NOENT));
        assert_eq!(folder.file(c".").err(), Some(Errno::ISDIR));
        assert!(rustix::fs::openat(&top, "fifo", OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).is_ok());
    }
}

#[test]
fn an_encoded_slash_or_backslash_is_refused() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("a/inside", "inside");
    site.write("a/\\", "inside");
    for (target, status) in
        [("/a%2finside", 404), ("/a%2Finside", 404), ("/a/%5c", 404), ("/a/%5C", 404), ("/%61/in%73ide?x=%2f", 200)]
    {
        assert_eq!(site.status(target), status, "{target}");
    }
}

#[test]
fn names_are_bytes() {
    for resolver in RESOLVERS {
        let site = Site::new(resolver);
        let path = site.path("").join(std::ffi::OsStr::from_bytes(b"\xe9\xff\n.txt"));
        fs::write(path, "bytes.").unwrap();
        let found = site.with_path(b"/\xe9\xff\n.txt", |request, root| root.answer(request));
        let Lookup::Reply(reply) = found else { panic!("{found:?}") };
        assert_eq!((&*reply.status, reply.length), ("200 OK", 6));
    }
}

#[test]
fn the_length_of_a_name_is_limited() {
    let longest = format!("/{}", "a".repeat(255));
    assert!(FileName::of(longest.as_bytes(), false).is_some());
    assert!(FileName::of(format!("{longest}a").as_bytes(), false).is_none());
    assert!(FileName::of("/a".repeat(1700).as_bytes(), false).is_some());
    assert!(FileName::of("/a".repeat(2000).as_bytes(), false).is_none());
    for path in [&b"a"[..], b"/a\0b", b"/a/..", b"/../a", b"/.", b"//", b"/a//b"] {
        assert!(FileName::of(path, true).is_none(), "{path:?}");
    }
}

#[test]
fn a_folder_may_be_replaced() {
    for resolver in RESOLVERS {
        let mut site = Site::new(resolver);
        site.write("file", "old");
        assert_eq!(site.get("/file").text(), "old");
        let (old, new) = (site.around.path().join("old"), site.around.path().join("new"));
        fs::create_dir(&new).unwrap();
        fs::write(new.join("file"), "young").unwrap();
        fs::rename(site.path(""), old).unwrap();
        fs::rename(new, site.around.path().join("folder")).unwrap();
        site.now += 1;
        assert_eq!(site.get("/file").text(), "young", "{resolver:?}");
    }
}

#[test]
fn the_folder_must_exist() {
    let options = |folder: &Path| Options { folder: folder.into(), ..Options::default() };
    let cache = || std::sync::Arc::new(crate::Cache::new(0));
    let around = tempfile::tempdir().unwrap();
    assert!(crate::StaticRoot::new(options(&around.path().join("nothing")), cache()).is_err());
    fs::write(around.path().join("file"), "").unwrap();
    assert!(crate::StaticRoot::new(options(&around.path().join("file")), cache()).is_err());
}
