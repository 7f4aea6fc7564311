//! Standard input of a CGI program: the body of the request, in a pipe, or in memory that memfd_create(2) makes.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

/// A request body.
#[derive(Debug)]
pub enum Input<'a> {
    /// No body.
    Nothing,
    /// A body in memory.
    Memory(&'a [u8]),
    /// A body in a file, read from its beginning.
    File(OwnedFd),
}

impl Input<'_> {
    /// A descriptor from which the program can read all of the body, without further writes by this process.
    pub(crate) fn into_stdio(self) -> io::Result<Stdio> {
        match self {
            Input::Nothing | Input::Memory([]) => Ok(Stdio::null()),
            Input::Memory(body) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                // Such a write to an empty pipe does not block.
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
