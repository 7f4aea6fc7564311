//! Dynamic table of HPACK (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

/// What an entry counts for besides its bytes (section 4.1).
const OVERHEAD: usize = 32;

/// A field: name and value in one allocation.
#[derive(Clone, Debug)]
struct Entry {
    bytes: Box<[u8]>,
    name: u32,
}

impl Entry {
    fn size(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

/// The fields that were sent last, the newest first, within a size.
#[derive(Clone, Debug)]
pub(crate) struct DynamicTable {
    entries: VecDeque<Entry>,
    size: usize,
    most: usize,
    /// Number of changes so far.
    changes: u64,
}

impl DynamicTable {
    pub(crate) fn new(most: usize) -> Self {
        DynamicTable { entries: VecDeque::new(), size: 0, most, changes: 0 }
    }

    /// The size that entries may have together.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A number that is another one after each change.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The size of the entries.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The field at a position; 0 is the newest.
    pub(crate) fn get(&self, position: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(position).map(|entry| entry.bytes.split_at(entry.name as usize))
    }

    /// Position of a field, and whether its value is this one too; `None`: there is no such name.
    pub(crate) fn find(&self, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
        let mut named = None;
        for (position, entry) in self.entries.iter().enumerate() {
            let (other, held) = entry.bytes.split_at(entry.name as usize);
            if other == name {
                if held == value {
                    return Some((position, true));
                }
                named = named.or(Some((position, false)));
            }
        }
        named
    }

    /// Adds a field; the oldest ones make room for it. A field that is larger than the table empties it (section 4.4).
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.changes += 1;
        let size = name.len() + value.len() + OVERHEAD;
        if size > self.most {
            self.evict(0);
            return;
        }
        // The name may be that of an entry which is evicted, so the bytes are copied first.
        let entry = Entry { bytes: [name, value].concat().into(), name: name.len() as u32 };
        self.evict(self.most - size);
        self.size += size;
        self.entries.push_front(entry);
    }

    /// Changes the size that entries may have together.
    pub(crate) fn resize(&mut self, most: usize) {
        self.changes += 1;
        self.most = most;
        self.evict(most);
        if most == 0 {
            self.entries = VecDeque::new();
        }
    }

    /// Removes the oldest entries until the rest have at most this size.
    fn evict(&mut self, size: usize) {
        while self.size > size {
            let Some(entry) = self.entries.pop_back() else { break };
            self.size -= entry.size();
        }
    }
}
