//! Which names lead to a file, and that none leads out of the folder.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, mknodat};
use rustix::io::Errno;

use super::{RESOLVERS, Stage};
use crate::file_id::FileId;
use crate::file_name::FileName;
use crate::folder::{Folder, Resolver};
use crate::options::Options;
use crate::static_root::Lookup;
use crate::walk::walk;

#[test]
fn nothing_outside_of_the_folder_is_found() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        fs::write(stage.around.path().join("secret"), "secret").unwrap();
        stage.write("a/inside", "inside");
        stage.link("../secret", "escape");
        stage.link("../../secret", "a/escape");
        stage.link(stage.around.path().join("secret"), "absolute");
        stage.link("..", "up");
        // Out and in again: what is outside is nobody's to say.
        stage.link("../../folder/a/inside", "a/again");
        stage.link("/proc/self/fd/0", "magic");
        stage.link("loop", "loop");
        stage.link("nothing", "dangling");
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
            assert_eq!(stage.status(target), 404, "{target} {resolver:?}");
            // A link that leads outside, to something that is there, is told apart: so that the log can say it.
            let is_outside = !matches!(target, "/magic" | "/loop" | "/loop/x" | "/dangling" | "/up/");
            if is_outside || target == "/dangling" {
                let found = stage.found("GET", target, "");
                assert_eq!(matches!(found, Lookup::OutsideRoot(_)), is_outside, "{target} {resolver:?}");
            }
        }
    }
}

#[test]
fn links_that_stay_inside_are_followed() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("a/b/file", "inside");
        stage.link("a/b/file", "straight");
        stage.link("b/../../a/./b//file", "a/winding");
        stage.link("../..", "a/b/top");
        stage.link("a/b/", "folder");
        stage.link("a/b/file/", "no-folder");
        stage.link("a/b/file/.", "no-folder-either");
        for target in ["/straight", "/a/winding", "/a/b/top/straight", "/a/b/top/a/b/top/a/b/file", "/folder/file"] {
            assert_eq!(stage.get(target).content, b"inside", "{target} {resolver:?}");
        }
        for target in ["/no-folder", "/no-folder-either", "/straight/", "/a/b/file/", "/a/b/file/more"] {
            assert_eq!(stage.status(target), 404, "{target} {resolver:?}");
        }
    }
}

#[test]
fn so_many_links_are_followed_and_no_more() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("0", "here");
        for number in 1..=41 {
            stage.link((number - 1).to_string(), &number.to_string());
        }
        assert_eq!(stage.status("/40"), 200, "{resolver:?}");
        assert_eq!(stage.status("/41"), 404, "{resolver:?}");
        let folder = Folder::open(&stage.path(""), resolver).unwrap();
        assert!(folder.stat_beneath(c"40").is_ok());
        assert_eq!(folder.stat_beneath(c"41").err(), Some(Errno::LOOP), "{resolver:?}");
    }
}

#[test]
fn both_resolvers_find_the_same() {
    let stage = Stage::new(Resolver::Kernel);
    stage.write("a/b/file", "");
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
        stage.link(target, name);
    }
    let folder = stage.path("");
    let [kernel, walking] = RESOLVERS.map(|resolver| Folder::open(&folder, resolver).unwrap());
    let top = fs::File::open(&folder).unwrap().into();
    // To be sure that it is not the kernel that is compared with itself.
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
        let mut stage = Stage::new(resolver);
        let top = fs::File::open(stage.path("")).unwrap();
        mknodat(&top, "fifo", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _listener = UnixListener::bind(stage.path("socket")).unwrap();
        stage.link("fifo", "link-to-fifo");
        stage.link("/dev/zero", "zero");
        for target in ["/fifo", "/socket", "/link-to-fifo", "/zero", "/fifo/"] {
            assert_eq!(stage.status(target), 404, "{target} {resolver:?}");
        }
        // Had it been a file a moment before, nobody would wait for it either.
        let folder = Folder::open(&stage.path(""), resolver).unwrap();
        assert!(folder.stat_beneath(c"fifo").is_ok_and(|id| !id.is_file()));
        assert_eq!(folder.file(c"fifo").err(), Some(Errno::NOENT));
        assert_eq!(folder.file(c".").err(), Some(Errno::ISDIR));
        assert!(rustix::fs::openat(&top, "fifo", OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).is_ok());
    }
}

#[test]
fn some_names_are_none() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("a/inside", "inside");
        stage.write("a/\\", "inside");
        for target in [
            "/a/../a/inside",
            "/a/%2e%2e/a/inside",
            "/a/./inside",
            "/a/%2E/inside",
            "/a%2finside",
            "/a%2Finside",
            "/a/%5c",
            "/a/%5C",
            "//a/inside",
            "/a//inside",
            "/a/inside/",
            "/a/inside//",
            "/..",
            "/.",
        ] {
            assert_eq!(stage.status(target), 404, "{target} {resolver:?}");
        }
        for target in ["/a/inside", "/%61/in%73ide", "/a/inside?x=%2f"] {
            assert_eq!(stage.status(target), 200, "{target} {resolver:?}");
        }
    }
}

#[test]
fn names_are_bytes() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        let path = stage.path("").join(std::ffi::OsStr::from_bytes(b"\xe9\xff\n.txt"));
        fs::write(path, "octets").unwrap();
        let found = stage.with_path(b"/\xe9\xff\n.txt", |request, root| root.answer(request));
        let Lookup::Reply(reply) = found else { panic!("{found:?}") };
        assert_eq!((&*reply.status, reply.length), ("200 OK", 6));
        // Not valid in UTF-8, so its extension tells nothing; this is safer than to guess.
        assert_eq!(stage.get("/%E9%FF").status, 404);
    }
}

#[test]
fn hidden_names_are_served_if_they_are_to() {
    let (mut stage, mut open) =
        (Stage::new(Resolver::Kernel), Stage::with(Resolver::Kernel, Options { hidden: true, ..Options::default() }));
    for stage in [&stage, &open] {
        for name in [".git/config", ".well-known/it", "a/.well-known/it", "a/.b", ".well-known/.c", "..."] {
            stage.write(name, "x");
        }
        stage.write("a/b", "x");
        stage.link(".b", "a/visible");
    }
    for target in ["/.git/config", "/a/.b", "/a/.well-known/it", "/.well-known/.c", "/...", "/%2egit/config", "/.git"] {
        assert_eq!(stage.status(target), 404, "{target}");
        if target != "/.git" {
            assert_eq!(open.status(target), 200, "{target}");
        }
    }
    for target in ["/.well-known/it", "/a/visible", "/a/b"] {
        assert_eq!((stage.status(target), open.status(target)), (200, 200), "{target}");
    }
}

#[test]
fn a_name_has_a_length() {
    let longest = format!("/{}", "a".repeat(255));
    assert!(FileName::of(longest.as_bytes(), false).is_some());
    assert!(FileName::of(format!("{longest}a").as_bytes(), false).is_none());
    assert!(FileName::of("/a".repeat(1700).as_bytes(), false).is_some());
    assert!(FileName::of("/a".repeat(2000).as_bytes(), false).is_none());
    for path in [&b"a"[..], b"/a\0b", b"/a/..", b"/../a", b"//", b"/a//b"] {
        assert!(FileName::of(path, true).is_none(), "{path:?}");
    }
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write(&longest[1..], "long");
    assert_eq!(stage.status(&longest), 200);
    assert_eq!(stage.status(&format!("{longest}a")), 404);
    assert_eq!(stage.status(&"/a".repeat(1700)), 404);
}

#[test]
fn a_folder_may_be_replaced() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("file", "old");
        assert_eq!(stage.get("/file").text(), "old");
        let (old, new) = (stage.around.path().join("old"), stage.around.path().join("new"));
        fs::create_dir(&new).unwrap();
        fs::write(new.join("file"), "young").unwrap();
        fs::rename(stage.path(""), old).unwrap();
        fs::rename(new, stage.around.path().join("folder")).unwrap();
        stage.now += 1;
        assert_eq!(stage.get("/file").text(), "young", "{resolver:?}");
    }
}

#[test]
fn there_must_be_a_folder() {
    let options = |folder: &Path| Options { folder: folder.into(), ..Options::default() };
    let cache = || std::sync::Arc::new(crate::Cache::new(0));
    let around = tempfile::tempdir().unwrap();
    assert!(crate::StaticRoot::new(options(&around.path().join("nothing")), cache()).is_err());
    fs::write(around.path().join("file"), "").unwrap();
    assert!(crate::StaticRoot::new(options(&around.path().join("file")), cache()).is_err());
}
