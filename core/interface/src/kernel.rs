//! Kernel TLS: the versions and ciphers that a kernel may encrypt, and the keys that it is given.

use std::fmt;

use zeroize::Zeroizing;

/// Protocol and cipher of records that a kernel may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Records {
    /// TLS 1.2 with AES-128-GCM.
    Tls12Aes128,
    /// TLS 1.2 with AES-256-GCM.
    Tls12Aes256,
    /// TLS 1.2 with ChaCha20-Poly1305.
    Tls12Chacha20,
    /// TLS 1.3 with AES-128-GCM.
    Tls13Aes128,
    /// TLS 1.3 with AES-256-GCM.
    Tls13Aes256,
    /// TLS 1.3 with ChaCha20-Poly1305.
    Tls13Chacha20,
}

impl Records {
    /// All of them, each at the place of its number.
    pub const ALL: [Records; 6] = [
        Records::Tls12Aes128,
        Records::Tls12Aes256,
        Records::Tls12Chacha20,
        Records::Tls13Aes128,
        Records::Tls13Aes256,
        Records::Tls13Chacha20,
    ];

    /// Whether the protocol is TLS 1.2.
    pub fn is_tls12(self) -> bool {
        matches!(self, Records::Tls12Aes128 | Records::Tls12Aes256 | Records::Tls12Chacha20)
    }

    /// The kernel's number of the cipher, and the bytes of its key (`linux/tls.h`).
    pub fn cipher(self) -> (u16, usize) {
        match self {
            Records::Tls12Aes128 | Records::Tls13Aes128 => (51, 16),
            Records::Tls12Aes256 | Records::Tls13Aes256 => (52, 32),
            Records::Tls12Chacha20 | Records::Tls13Chacha20 => (54, 32),
        }
    }

    /// Whether the cipher is ChaCha20-Poly1305.
    pub fn is_chacha20(self) -> bool {
        self.cipher().0 == 54
    }

    /// Parameters with keys that protect nothing, for a question to the kernel.
    pub fn probe(self) -> KernelKeys {
        self.keys(&[0; 32][..self.cipher().1], &[0; 12], 0)
    }

    /// `struct tls12_crypto_info_*`: version, cipher, nonce, key, salt, number of the next record.
    pub fn keys(self, key: &[u8], iv: &[u8; 12], sequence: u64) -> KernelKeys {
        let version: u16 = if self.is_tls12() { 0x0303 } else { 0x0304 };
        // Never grown, so that no copy of the key is left behind.
        let mut out = Zeroizing::new(Vec::with_capacity(2 + 2 + 12 + key.len() + 8));
        out.extend_from_slice(&version.to_ne_bytes());
        out.extend_from_slice(&self.cipher().0.to_ne_bytes());
        if self.is_chacha20() {
            out.extend_from_slice(iv);
            out.extend_from_slice(key);
        } else {
            let (salt, mut nonce) =
                (&iv[..4], u64::from_be_bytes([iv[4], iv[5], iv[6], iv[7], iv[8], iv[9], iv[10], iv[11]]));
            if self.is_tls12() {
                // A nonce that is used twice reveals the key. The nonces of rustls are this value XOR the number of the record; the
                // kernel counts upwards from the nonce it is given. So the kernel's differ in the highest bit, and the second
                // highest is 0, so that counting never changes the highest.
                nonce = (nonce ^ 1 << 63) & !(1 << 62);
            }
            out.extend_from_slice(&nonce.to_be_bytes());
            out.extend_from_slice(key);
            out.extend_from_slice(salt);
        }
        out.extend_from_slice(&sequence.to_be_bytes());
        KernelKeys(out)
    }
}

impl fmt::Display for Records {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cipher = match self.cipher() {
            (51, _) => "AES-128-GCM",
            (52, _) => "AES-256-GCM",
            _ => "ChaCha20-Poly1305",
        };
        write!(formatter, "TLS 1.{} {cipher}", if self.is_tls12() { 2 } else { 3 })
    }
}

/// What the kernel needs to make the next records, as it wants it in `setsockopt`. Wiped when it is dropped.
pub struct KernelKeys(Zeroizing<Vec<u8>>);

/// Bytes of the kernel's largest structure.
pub const MOST_KEYS: usize = 2 + 2 + 12 + 32 + 8;

impl KernelKeys {
    /// Those that somebody writes into the room that there is; how many bytes they have is returned by `write`.
    pub fn written(write: impl FnOnce(&mut [u8; MOST_KEYS]) -> Option<usize>) -> Option<Self> {
        let mut room = Zeroizing::new([0; MOST_KEYS]);
        let length = write(&mut room)?;
        Some(KernelKeys(Zeroizing::new(room.get(..length)?.to_vec())))
    }

    /// The bytes of the kernel's structure.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KernelKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KernelKeys")
    }
}
