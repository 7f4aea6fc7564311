//! Text of limited length in memory that other processes read.

use std::sync::atomic::{AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();

/// Text of at most `WORDS` times eight bytes. The owner guards it by a number that is written before and behind it.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Text<const WORDS: usize> {
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Default for Text<WORDS> {
    fn default() -> Self {
        Text { length: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl<const WORDS: usize> Text<WORDS> {
    /// Sets it to the beginning of `text` for which there is room.
    #[inline]
    pub(super) fn set(&self, text: &[u8]) {
        let text = &text[..text.len().min(WORDS * WORD)];
        let (whole, rest) = text.as_chunks::<WORD>();
        for (word, bytes) in self.words.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if let Some(word) = self.words.get(whole.len())
            && !rest.is_empty()
        {
            let mut padded = [0; WORD];
            padded[..rest.len()].copy_from_slice(rest);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        self.length.store(text.len() as u64, Ordering::Relaxed);
    }

    /// Empties it.
    #[inline]
    pub(super) fn clear(&self) {
        self.length.store(0, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Vec<u8> {
        let mut text: Vec<u8> = self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        text.truncate(usize::try_from(self.length.load(Ordering::Relaxed)).unwrap_or(0));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_fit() {
        let text = Text::<2>::default();
        for given in ["", "short", "sixteen bytes ..", "a text of more than sixteen bytes", "again"] {
            text.set(given.as_bytes());
            assert_eq!(text.get(), &given.as_bytes()[..given.len().min(16)]);
        }
        text.clear();
        assert_eq!(text.get(), b"");
        // Whatever another process writes there.
        text.length.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(text.get().len(), 16);
    }
}
