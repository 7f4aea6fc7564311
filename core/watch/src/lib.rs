//! Changes of the files in folders, from inotify(7). Used by the development server only.

#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;

/// Events that change contents, names or times.
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

/// Bytes read at once; an event takes 272 at most.
const ROOM: usize = 16 * 1024;

/// Events returned at once: as many as the kernel keeps by default, so that a busy writer does not keep `read` from
/// returning.
const MOST: usize = 16 * 1024;

/// The last change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Written to, and still open for writing.
    Written,
    /// Closed after it was open for writing, or other attributes: compare time and size.
    Touched,
    /// Created, removed or replaced; of a watched folder: replaced or removed.
    Changed,
}

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

    /// Watches these folders, and no others; `false` if one of them is not there. Unreadable ones are left out.
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

    /// The changes since the last call, by path, without waiting; `None`: more than the kernel keeps, and anything may have
    /// happened.
    pub fn read(&mut self) -> Result<Option<HashMap<OsString, Change>>, Errno> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut reader = Reader::new(&self.fd, &mut room);
        let mut changes = HashMap::new();
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
            let change = then(changes.get(&path).copied(), what);
            changes.insert(path, change);
        }
        Ok((!overflowed).then_some(changes))
    }
}

/// The change of a file after another event.
fn then(before: Option<Change>, event: ReadFlags) -> Change {
    if event.contains(ReadFlags::MODIFY) {
        Change::Written
    } else if event.contains(ReadFlags::ATTRIB) {
        before.unwrap_or(Change::Touched)
    } else if event.contains(ReadFlags::CLOSE_WRITE) && matches!(before, None | Some(Change::Touched)) {
        Change::Touched
    } else {
        Change::Changed
    }
}

/// Stops watching a folder, which may have been removed already.
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

    /// The changes, by the names in the folder.
    fn told(inotify: &mut Inotify, folder: &TempDir) -> Vec<(String, Change)> {
        let name = |path: OsString| Path::new(&path).strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
        let changes = inotify.read().unwrap().unwrap();
        let mut changes: Vec<_> = changes.into_iter().map(|(path, what)| (name(path), what)).collect();
        changes.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        changes
    }

    fn one(name: &str, what: Change) -> Vec<(String, Change)> {
        vec![(name.to_owned(), what)]
    }

    #[test]
    fn a_written_file_is_reported_before_and_after_it_is_closed() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("app.py"), "first").unwrap();
        let mut inotify = watched(&folder, &[""]);
        assert_eq!(told(&mut inotify, &folder), []);
        let mut file = File::create(folder.path().join("app.py")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Written));
        file.write_all(b"again").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Written));
        drop(file);
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Touched));
        fs::write(folder.path().join("app.py"), "at once").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Changed));
        drop(OpenOptions::new().append(true).open(folder.path().join("app.py")).unwrap());
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Touched));
        fs::set_permissions(folder.path().join("app.py"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Touched));
        let mut file = File::create(folder.path().join("app.py")).unwrap();
        fs::set_permissions(folder.path().join("app.py"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Written));
        file.write_all(b"more").unwrap();
        drop(file);
        assert_eq!(told(&mut inotify, &folder), one("app.py", Change::Changed));
        fs::read(folder.path().join("app.py")).unwrap();
        assert_eq!(told(&mut inotify, &folder), []);
    }

    #[test]
    fn names_that_appear_move_and_vanish() {
        let folder = TempDir::new().unwrap();
        let mut inotify = watched(&folder, &[""]);
        fs::create_dir(folder.path().join("new")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("new", Change::Changed));
        fs::rename(folder.path().join("new"), folder.path().join("moved")).unwrap();
        let both = [("moved".to_owned(), Change::Changed), ("new".to_owned(), Change::Changed)];
        assert_eq!(told(&mut inotify, &folder), both);
        fs::remove_dir(folder.path().join("moved")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("moved", Change::Changed));
    }

    #[test]
    fn a_moved_or_deleted_folder_is_reported_itself() {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("inner/deep")).unwrap();
        let mut inotify = watched(&folder, &["inner/deep"]);
        fs::rename(folder.path().join("inner/deep"), folder.path().join("deep")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("inner/deep", Change::Changed));
        fs::remove_dir(folder.path().join("deep")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("inner/deep", Change::Changed));
        fs::create_dir_all(folder.path().join("inner/deep")).unwrap();
        assert_eq!(inotify.watch(&paths(&folder, &["inner/deep"])), Ok(true));
        fs::write(folder.path().join("inner/deep/x.py"), "").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("inner/deep/x.py", Change::Changed));
    }

    #[test]
    fn new_folders_replace_the_watched_ones() {
        let folder = TempDir::new().unwrap();
        ["a", "b", "c"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        let mut inotify = watched(&folder, &["a", "b"]);
        fs::write(folder.path().join("b/before.py"), "").unwrap();
        assert_eq!(inotify.watch(&paths(&folder, &["b", "c"])), Ok(true));
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name).join("x.py"), "").unwrap();
        }
        // Earlier changes are not lost.
        let names: Vec<_> = told(&mut inotify, &folder).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b/before.py", "b/x.py", "c/x.py"]);
        assert_eq!(inotify.watch(&paths(&folder, &["b", "not there", "b/x.py"])), Ok(false));
        fs::write(folder.path().join("b/x.py"), "again").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("b/x.py", Change::Changed));
    }

    #[test]
    fn another_folder_of_the_same_name_is_watched_instead() {
        let folder = TempDir::new().unwrap();
        ["old", "new"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        let mut inotify = watched(&folder, &["old"]);
        fs::rename(folder.path().join("old"), folder.path().join("away")).unwrap();
        fs::rename(folder.path().join("new"), folder.path().join("old")).unwrap();
        assert_eq!(told(&mut inotify, &folder), one("old", Change::Changed));
        assert_eq!(inotify.watch(&paths(&folder, &["old"])), Ok(true));
        fs::write(folder.path().join("away/x.py"), "").unwrap();
        fs::write(folder.path().join("old/x.py"), "").unwrap();
        assert_eq!(told(&mut inotify, &folder), one("old/x.py", Change::Changed));
    }

    #[test]
    fn an_overflow_of_the_kernel_queue_is_reported() {
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
        assert_eq!(told(&mut inotify, &folder), one("c.py", Change::Changed));
    }
}
