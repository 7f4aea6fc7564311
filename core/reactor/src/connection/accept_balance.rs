//! The number of connections of each worker, so that workers accept evenly.
//!
//! Workers accept from the same socket, and the first one to wake up would accept everything. So each worker writes its
//! number of connections into a file in memory, and one with clearly more connections than another yields to it for a
//! moment.

use crate::sys::OwnedFd;
use crate::sys::file::{read_at, write_at};

/// Workers beyond this number are not looked at.
const MOST: usize = 256;
/// Number of a worker that does not accept: not started yet, told to stop, or dead. The supervisor writes it for dead
/// workers.
const ABSENT: u32 = u32::MAX;
const WIDTH: usize = size_of::<u32>();

/// The numbers of all workers; ours is at a known place.
#[derive(Debug)]
pub struct AcceptBalance {
    file: OwnedFd,
    ours: usize,
}

impl AcceptBalance {
    /// `file` holds a 32-bit number for each worker, in native byte order; ours is number `ours`.
    pub fn new(file: OwnedFd, ours: usize) -> Self {
        let balance = AcceptBalance { file, ours };
        balance.publish(0);
        balance
    }

    /// Publishes the number of connections of this worker.
    pub(crate) fn publish(&self, connections: usize) {
        self.write(u32::try_from(connections).unwrap_or(ABSENT - 1));
    }

    /// Publishes that this worker does not accept any more.
    pub(crate) fn withdraw(&self) {
        self.write(ABSENT);
    }

    fn write(&self, number: u32) {
        // If it fails, the other workers see an older number: less even, nothing worse.
        let _ = write_at(&self.file, &number.to_ne_bytes(), (self.ours * WIDTH) as u64);
    }

    /// Whether another worker has so few connections that it should accept the next one.
    pub(crate) fn should_yield(&self, connections: usize) -> bool {
        let mut numbers = [0; MOST * WIDTH];
        let Ok(length) = read_at(&self.file, &mut numbers, 0) else { return false };
        let least = numbers[..length]
            .chunks_exact(WIDTH)
            .enumerate()
            .filter(|(worker, _)| *worker != self.ours)
            .map(|(_, number)| u32::from_ne_bytes([number[0], number[1], number[2], number[3]]))
            .min()
            .unwrap_or(ABSENT);
        least != ABSENT && connections > least as usize + (least as usize / 8).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_with_more_lets_the_other_go_first() {
        let file = tempfile::tempfile().unwrap();
        let absent = ABSENT.to_ne_bytes().repeat(3);
        std::io::Write::write_all(&mut &file, &absent).unwrap();
        let copy = || OwnedFd::from(file.try_clone().unwrap());
        let one = AcceptBalance::new(copy(), 0);
        assert!(!one.should_yield(100), "nobody else is there");
        let two = AcceptBalance::new(copy(), 2);
        one.publish(2);
        assert!(one.should_yield(2) && !two.should_yield(0));
        two.publish(1);
        assert!(!one.should_yield(2) && !two.should_yield(1));
        two.publish(80);
        assert!(!one.should_yield(90) && one.should_yield(91));
        two.withdraw();
        assert!(!one.should_yield(91), "it does not take anybody");
    }
}
