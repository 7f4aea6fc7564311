//! Finds the CGI program of a request path.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The program of a folder.
const INDEX: &str = "index.cgi";

/// A program that can be run.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path.
    pub file: PathBuf,
    /// Length of the part of the path that names it; the rest is its `PATH_INFO`. `None`: the path names the folder of this
    /// index program.
    pub named_by: Option<usize>,
}

/// Why no program can be run.
#[derive(Debug, PartialEq, Eq)]
pub enum NotFound {
    /// There is none of this name, or a hidden one.
    Missing,
    /// A symbolic link on the way leads out of the root.
    Outside(PathBuf),
    /// The path of a folder with an index program, without the trailing slash that relative links need.
    Slashless,
    /// It is not executable for this process.
    NotExecutable(PathBuf),
    /// A non-parsed header script (`nph-`, RFC 3875 section 5), which is not supported.
    NonParsed(PathBuf),
}

/// Finds the program of a decoded path below `root`, a canonical path.
///
/// It is the first regular file on the way. Nothing outside of `root` and nothing hidden is found. The file may be replaced
/// before it is started, but only by users who may write programs there anyway.
pub fn find(root: &Path, path: &[u8]) -> Result<Found, NotFound> {
    if path.is_empty() {
        // The path is the prefix of the route.
        return Err(slashless(root));
    }
    let below = path.strip_prefix(b"/").ok_or(NotFound::Missing)?;
    if path.contains(&0) || below.split(|&byte| byte == b'/').any(|name| matches!(name, b"." | b"..")) {
        return Err(NotFound::Missing);
    }
    let mut file = root.to_owned();
    let mut linked = false;
    let mut end = 0;
    for name in below.split(|&byte| byte == b'/') {
        end += 1 + name.len();
        if name.is_empty() && end == path.len() {
            file.push(INDEX);
            return match stat(&file, &mut linked) {
                Some(found) if found.is_file() => check(root, file, linked, None),
                _ => Err(NotFound::Missing),
            };
        }
        if name.is_empty() || name.starts_with(b".") {
            return Err(NotFound::Missing);
        }
        file.push(OsStr::from_bytes(name));
        match stat(&file, &mut linked) {
            Some(found) if found.is_dir() => {}
            Some(found) if found.is_file() => return check(root, file, linked, Some(end)),
            _ => return Err(NotFound::Missing),
        }
    }
    Err(slashless(&file))
}

fn slashless(folder: &Path) -> NotFound {
    if folder.join(INDEX).is_file() { NotFound::Slashless } else { NotFound::Missing }
}

/// Stats a file, or the target of a symbolic link, and notes the link.
fn stat(file: &Path, linked: &mut bool) -> Option<fs::Metadata> {
    let found = fs::symlink_metadata(file).ok()?;
    if !found.is_symlink() {
        return Some(found);
    }
    *linked = true;
    fs::metadata(file).ok()
}

/// Checks that a regular file may be run.
fn check(root: &Path, file: PathBuf, linked: bool, named_by: Option<usize>) -> Result<Found, NotFound> {
    // Only links can lead outside of the root.
    if linked && !fs::canonicalize(&file).is_ok_and(|real| real.starts_with(root)) {
        return Err(NotFound::Outside(file));
    }
    if file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"nph-")) {
        return Err(NotFound::NonParsed(file));
    }
    if access(&file, Access::EXEC_OK).is_err() {
        return Err(NotFound::NotExecutable(file));
    }
    Ok(Found { file, named_by })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn program(path: &Path, mode: u32) {
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_file_on_the_way_is_the_program() {
        let outer = tempfile::tempdir().unwrap();
        let outer = fs::canonicalize(outer.path()).unwrap();
        let root = outer.join("bin");
        fs::create_dir_all(root.join("deep/er")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        for name in ["a.cgi", "deep/er/b.cgi", "deep/index.cgi", "nph-c.cgi", ".git/hook", "two..dots"] {
            program(&root.join(name), 0o755);
        }
        program(&root.join("text"), 0o644);
        program(&outer.join("secret.cgi"), 0o755);
        symlink(outer.join("secret.cgi"), root.join("out.cgi")).unwrap();
        symlink(&outer, root.join("up")).unwrap();
        symlink("a.cgi", root.join("alias.cgi")).unwrap();
        symlink(root.join("deep"), root.join("same")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), 0o777.into()).unwrap();

        let found = |path: &str| find(&root, path.as_bytes()).map(|found| (found.file, found.named_by));
        assert_eq!(found("/a.cgi"), Ok((root.join("a.cgi"), Some(6))));
        assert_eq!(found("/a.cgi/b/c"), Ok((root.join("a.cgi"), Some(6))));
        assert_eq!(found("/a.cgi/.hidden//x"), Ok((root.join("a.cgi"), Some(6))));
        assert_eq!(found("/deep/er/b.cgi/"), Ok((root.join("deep/er/b.cgi"), Some(14))));
        assert_eq!(found("/deep/"), Ok((root.join("deep/index.cgi"), None)));
        assert_eq!(found("/alias.cgi"), Ok((root.join("alias.cgi"), Some(10))));
        assert_eq!(found("/same/er/b.cgi"), Ok((root.join("same/er/b.cgi"), Some(14))));
        assert_eq!(found("/same"), Err(NotFound::Slashless));
        assert_eq!(found("/two..dots"), Ok((root.join("two..dots"), Some(10))));
        assert_eq!(found("/deep"), Err(NotFound::Slashless));
        assert_eq!(found("/text"), Err(NotFound::NotExecutable(root.join("text"))));
        assert_eq!(found("/out.cgi"), Err(NotFound::Outside(root.join("out.cgi"))));
        assert_eq!(found("/up/secret.cgi"), Err(NotFound::Outside(root.join("up/secret.cgi"))));
        assert_eq!(found("/nph-c.cgi"), Err(NotFound::NonParsed(root.join("nph-c.cgi"))));
        for path in [
            "",
            "/",
            "a.cgi",
            "/deep/er/",
            "/none",
            "//a.cgi",
            "/deep//er/b.cgi",
            "/./a.cgi",
            "/.git/hook",
            "/fifo",
            "/../secret.cgi",
            "/deep/../a.cgi",
            "/a.cgi/..",
            "/a.cgi\0",
            "/deep/er",
        ] {
            assert_eq!(found(path), Err(NotFound::Missing), "{path:?}");
        }
    }
}
