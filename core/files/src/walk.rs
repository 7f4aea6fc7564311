//! Resolves a name below a folder segment by segment, where openat2(2) is missing or forbidden.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

/// Symbolic links followed, as many as in the kernel (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// Opens `name` below `top`. Each step opens one segment in a folder that is open already, and links are read rather than
/// followed, so that concurrent changes cannot lead outside.
pub(crate) fn walk(top: &OwnedFd, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    // Open folders below `top`, the deepest last; `..` removes one.
    let mut folders: Vec<OwnedFd> = Vec::new();
    // Remaining segments, the next one last.
    let mut segments = Vec::new();
    push(&mut segments, name)?;
    let mut links = 0;
    while let Some(segment) = segments.pop() {
        match segment.to_bytes() {
            b"." => continue,
            b".." => match folders.pop() {
                Some(_) => continue,
                None => return Err(Errno::XDEV),
            },
            _ => {}
        }
        let here = deepest(top, &folders);
        let found = openat(here, &segment, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&found)?.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = readlinkat(&found, c"", Vec::new())?;
                if target.as_bytes().starts_with(b"/") {
                    return Err(Errno::XDEV);
                }
                push(&mut segments, &target)?;
            }
            FileType::Directory => folders.push(found),
            // More segments follow (`.` after a slash counts), so this had to be a folder.
            _ if !segments.is_empty() => return Err(Errno::NOTDIR),
            _ if flags.contains(OFlags::PATH) => return Ok(found),
            _ => return openat(here, &segment, flags | OFlags::NOFOLLOW, Mode::empty()),
        }
    }
    openat(deepest(top, &folders), c".", flags, Mode::empty())
}

fn deepest<'a>(top: &'a OwnedFd, folders: &'a [OwnedFd]) -> BorrowedFd<'a> {
    folders.last().unwrap_or(top).as_fd()
}

/// Pushes the segments of a name. A trailing slash counts as `.`: the segment before it must be a folder.
fn push(segments: &mut Vec<CString>, name: &CStr) -> Result<(), Errno> {
    for segment in name.to_bytes().rsplit(|&byte| byte == b'/') {
        let segment = if segment.is_empty() { b"." } else { segment };
        segments.push(CString::new(segment).map_err(|_| Errno::INVAL)?);
    }
    Ok(())
}
