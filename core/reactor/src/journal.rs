//! The error log: one line for each thing worth telling a person.

use std::os::fd::OwnedFd;

use crate::clock;

/// How much a line matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for a fault.
    Debug,
    /// What happens in ordinary operation.
    #[default]
    Info,
    /// What should not happen, and was coped with.
    Warning,
    /// What somebody must mend.
    Error,
}

impl Level {
    /// The level of this name, as in the option `log_level`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "debug" => Level::Debug,
            "info" => Level::Info,
            "warning" => Level::Warning,
            "error" => Level::Error,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Where the lines go.
#[derive(Debug, Default)]
pub struct Journal {
    file: Option<OwnedFd>,
    level: Level,
}

impl Journal {
    /// Writes lines of at least `level` to `file`.
    pub fn new(file: OwnedFd, level: Level) -> Self {
        Journal { file: Some(file), level }
    }

    /// Writes a line such as `2026-11-20T09:27:42Z [4711] warning: …` in one piece. The lines of a longer message follow
    /// as they are. There is nobody to tell if it fails.
    pub fn write(&self, level: Level, message: &str) {
        if level < self.level {
            return;
        }
        if let Some(file) = &self.file {
            let process = std::process::id();
            let text = clock::with_time_of_day(|time| {
                format!("{} [{process}] {}: {}\n", time.iso, level.name(), message.trim_end())
            });
            let mut rest = text.as_bytes();
            while let Ok(written @ 1..) = rustix::io::write(file, rest) {
                rest = rest.get(written..).unwrap_or_default();
            }
        }
    }
}
