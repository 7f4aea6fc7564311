//! What happens to the files of folders, as the kernel tells it (inotify(7)). The development server's, not the reactor's.

#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;

/// What changes contents, names or times.
const MASK: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// Octets read at once; a name takes 272 at most.
const ROOM: usize = 16 * 1024;

/// Events handed over at once. The kernel keeps as many by default, and whoever writes on and on shall not keep us reading.
const MOST: usize = 16 * 1024;

/// What has happened to a file, or last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It was written to, and whoever does has not closed it.
    Written,
    /// It was closed by somebody who could have written to it, or has other attributes. Its time and size tell the rest.
    Touched,
    /// It has appeared, has gone or has other contents; of a folder that is watched: it is another one, or gone.
    Changed,
}

/// What has happened since the last time, each path once.
pub type Happenings = Vec<(OsString, Happening)>;

/// Watches folders, but not below them.
#[derive(Debug)]
pub struct Inotify {
    fd: OwnedFd,
    folders: HashMap<i32, OsString>,
}

impl Inotify {
    /// Watches nothing yet.
    pub fn new() -> Result<Self, Errno> {
        Ok(Inotify { fd: init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?, folders: HashMap::new() })
    }

    /// Readable when there is something to [`read`](Self::read).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Watches these folders, and no others; `false` if one of them is not there. Those closed to us are left out.
    ///
    /// After an error it is not known which are watched.
    pub fn watch(&mut self, folders: &[OsString]) -> Result<bool, Errno> {
        let wanted: HashSet<&OsStr> = folders.iter().map(OsString::as_os_str).collect();
        // First, or we would use up twice as much of the limit.
        self.folders.retain(|number, folder| {
            let stays = wanted.contains(folder.as_os_str());
            if !stays {
                forget(&self.fd, *number);
            }
            stays
        });
        let mut complete = true;
        let mut fresh = HashMap::with_capacity(folders.len());
        for folder in folders {
            match add_watch(&self.fd, folder.as_os_str(), MASK) {
                Ok(number) => {
                    fresh.insert(number, folder.clone());
                }
                Err(Errno::NOENT | Errno::NOTDIR) => complete = false,
                Err(Errno::ACCESS) => {}
                Err(error) => return Err(error),
            }
        }
        // Another folder has the name of these.
        self.folders.keys().filter(|number| !fresh.contains_key(number)).for_each(|number| forget(&self.fd, *number));
        self.folders = fresh;
        Ok(complete)
    }

    /// Everything that has happened, without waiting; `None`: more than the kernel keeps, and anything may have happened.
    pub fn read(&mut self) -> Result<Option<Happenings>, Errno> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut reader = Reader::new(&self.fd, &mut room);
        let mut found = Vec::new();
        let mut places: HashMap<OsString, usize> = HashMap::new();
        let mut overflowed = false;
        for _ in 0..MOST {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            };
            let what = event.events();
            overflowed |= what.contains(ReadFlags::QUEUE_OVERFLOW);
            // Not there: one that we watch no more.
            let Some(folder) = self.folders.get(&event.wd()) else { continue };
            let path = match event.file_name() {
                Some(name) => joined(folder, name.to_bytes()),
                None => folder.clone(),
            };
            if what.contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
            }
            match places.get(&path) {
                Some(&place) => {
                    let (_, happening): &mut (OsString, Happening) = &mut found[place];
                    *happening = then(Some(*happening), what);
                }
                None => {
                    places.insert(path.clone(), found.len());
                    found.push((path, then(None, what)));
                }
            }
        }
        Ok((!overflowed).then_some(found))
    }
}

/// What has happened to a file, one thing after another.
fn then(before: Option<Happening>, event: ReadFlags) -> Happening {
    if event.contains(ReadFlags::MODIFY) {
        Happening::Written
    } else if event.contains(ReadFlags::ATTRIB) {
        before.unwrap_or(Happening::Touched)
    } else if event.contains(ReadFlags::CLOSE_WRITE) && matches!(before, None | Some(Happening::Touched)) {
        Happening::Touched
    } else {
        Happening::Changed
    }
}

/// Nobody waits for what it is for, and it may be gone already.
fn forget(fd: &OwnedFd, number: i32) {
    let _ = remove_watch(fd, number);
}

fn joined(folder: &OsStr, name: &[u8]) -> OsString {
    let mut path = folder.to_os_string().into_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    OsString::from_vec(path)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions, Permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;

    fn watched(folder: &TempDir, names: &[&str]) -> Inotify {
        let mut inotify = Inotify::new().unwrap();
        assert_eq!(inotify.watch(&paths(folder, names)), Ok(true));
        inotify
    }

    fn paths(folder: &TempDir, names: &[&str]) -> Vec<OsString> {
        names.iter().map(|name| path(folder, name)).collect()
    }

    fn path(folder: &TempDir, name: &str) -> OsString {
        folder.path().join(name).into_os_string().into_string().unwrap().trim_end_matches('/').into()
    }

    /// What has happened, by the names in the folder.
    fn told(inotify: &mut Inotify, folder: &TempDir) -> Vec<(String, Happening)> {
        let name = |path: OsString| Path::new(&path).strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
        inotify.read().unwrap().unwrap().into_iter().map(|(path, what)| (name(path), what)).collect()
    }

    fn one(name: &str, what: Happening) -> Vec<(String, Happening)> {
        vec![(name.to_owned(), what)]
    }

    #[test]
    fn a_file_that_is_written_is_told_before_and_after_it_is_closed() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("app.py"), "first").unwrap();
        let mut inotify = watched(&folder, &[""]);
        assert_eq!(told(&mut inotify, &folder), []);
        let mut file = File::create(folder.path().join("app.py")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Written));
        file.write_all(b"again").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Written));
        drop(file);
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Touched));
        fs::write(folder.path().join("app.py"), "at once").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Changed));
        drop(OpenOptions::new().append(true).open(folder.path().join("app.py")).unwrap());
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Touched));
        fs::set_permissions(folder.path().join("app.py"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Touched));
        let mut file = File::create(folder.path().join("app.py")).unwrap();
        fs::set_permissions(folder.path().join("app.py"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Written));
        file.write_all(b"more").unwrap();
        drop(file);
        assert_eq!(told(&mut inotify, &folder), one("app.py", Happening::Changed));
        fs::read(folder.path().join("app.py")).unwrap();
        assert_eq!(told(&mut inotify, &folder), []);
    }

    #[test]
    fn names_that_appear_move_and_vanish() {
        let folder = TempDir::new().unwrap();
        let mut inotify = watched(&folder, &[""]);
        fs::create_dir(folder.path().join("new")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("new", Happening::Changed));
        fs::rename(folder.path().join("new"), folder.path().join("moved")).unwrap();
        let both = [("new".to_owned(), Happening::Changed), ("moved".to_owned(), Happening::Changed)];
        assert_eq!(told(&mut inotify, &folder), both);
        fs::remove_dir(folder.path().join("moved")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("moved", Happening::Changed));
    }

    #[test]
    fn a_folder_that_is_moved_or_deleted_is_told_itself() {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("inner/deep")).unwrap();
        let mut inotify = watched(&folder, &["inner/deep"]);
        fs::rename(folder.path().join("inner/deep"), folder.path().join("deep")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("inner/deep", Happening::Changed));
        fs::remove_dir(folder.path().join("deep")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("inner/deep", Happening::Changed));
        fs::create_dir_all(folder.path().join("inner/deep")).unwrap();
        assert_eq!(inotify.watch(&paths(&folder, &["inner/deep"])), Ok(true));
        fs::write(folder.path().join("inner/deep/x.py"), "").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("inner/deep/x.py", Happening::Changed));
    }

    #[test]
    fn other_folders_are_watched_and_those_no_more() {
        let folder = TempDir::new().unwrap();
        ["a", "b", "c"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        let mut inotify = watched(&folder, &["a", "b"]);
        fs::write(folder.path().join("b/before.py"), "").unwrap();
        assert_eq!(inotify.watch(&paths(&folder, &["b", "c"])), Ok(true));
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name).join("x.py"), "").unwrap();
        }
        // What has happened so far is not lost.
        let names: Vec<_> = told(&mut inotify, &folder).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b/before.py", "b/x.py", "c/x.py"]);
        assert_eq!(inotify.watch(&paths(&folder, &["b", "not there", "b/x.py"])), Ok(false));
        fs::write(folder.path().join("b/x.py"), "again").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("b/x.py", Happening::Changed));
    }

    #[test]
    fn another_folder_of_the_same_name_is_watched_instead() {
        let folder = TempDir::new().unwrap();
        ["old", "new"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        let mut inotify = watched(&folder, &["old"]);
        fs::rename(folder.path().join("old"), folder.path().join("away")).unwrap();
        fs::rename(folder.path().join("new"), folder.path().join("old")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("old", Happening::Changed));
        assert_eq!(inotify.watch(&paths(&folder, &["old"])), Ok(true));
        fs::write(folder.path().join("away/x.py"), "").unwrap();
        fs::write(folder.path().join("old/x.py"), "").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("old/x.py", Happening::Changed));
    }

    #[test]
    fn more_than_the_kernel_keeps_is_said() {
        let folder = TempDir::new().unwrap();
        let limit: usize =
            fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
        let mut inotify = watched(&folder, &[""]);
        let names = [folder.path().join("a.py"), folder.path().join("b.py")];
        fs::write(&names[0], "x").unwrap();
        for number in 0..=limit / 2 {
            fs::rename(&names[number % 2], &names[(number + 1) % 2]).unwrap();
        }
        let mut overflowed = false;
        for _ in 0..=limit / MOST {
            overflowed |= inotify.read().unwrap().is_none();
        }
        assert!(overflowed);
        assert_eq!(told(&mut inotify, &folder), []);
        fs::write(folder.path().join("c.py"), "x").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("c.py", Happening::Changed));
    }
}
