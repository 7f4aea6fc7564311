//! The standard input of a program: the body of a request.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

/// A whole body.
#[derive(Debug)]
pub enum Input<'a> {
    /// There is none.
    Nothing,
    /// In memory.
    Memory(&'a [u8]),
    /// In a file, from its beginning.
    File(OwnedFd),
}

impl Input<'_> {
    /// Makes it something that a program can read, without anybody to wait for it.
    pub(crate) fn into_stdio(self) -> io::Result<Stdio> {
        match self {
            Input::Nothing | Input::Memory([]) => Ok(Stdio::null()),
            Input::Memory(body) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                // To an empty pipe, as much as it holds is written at once.
                if body.len() <= fcntl_getpipe_size(&write)? {
                    File::from(write).write_all(body)?;
                    return Ok(read.into());
                }
                let file = memfd_create("body", MemfdFlags::CLOEXEC)?;
                File::from(file.try_clone()?).write_all(body)?;
                Input::File(file).into_stdio()
            }
            Input::File(file) => {
                seek(&file, SeekFrom::Start(0))?;
                Ok(file.into())
            }
        }
    }
}
