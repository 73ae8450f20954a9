//! Keys and encryption.
//!
//! In: bytes and their [`Context`]. Out: encrypted bytes, which only decrypt with the same key and
//! context. A [`KeyId`] identifies a key without revealing it, so that a wrong key is distinguished
//! from damage. Must not: touch files, or reveal a key, except by [`Key::to_text`].
//!
//! A key is 32 bytes, from which the actual keys are derived: the key of XChaCha20-Poly1305, whose
//! nonces are long enough to be random; the id; and the keys of masks. A mask hides a digest one to
//! one, so that it can still be looked up.
//!
//! Encrypted bytes are: a format byte, the key's id, the nonce, the ciphertext with its tag.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aes::Aes256;
use aes::cipher::{Block, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Aead as _, Payload};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use thiserror::Error;
use zeroize::Zeroizing;

/// The length of a key, in bytes.
const KEY: usize = 32;
/// The length of a nonce, in bytes.
const NONCE: usize = 24;
/// The length of a key's id, in bytes.
const ID: usize = 8;
/// The length of the tag at the end of the ciphertext, in bytes.
const TAG: usize = 16;
/// The first byte of encrypted bytes.
const FORMAT: u8 = 1;
/// How much longer encrypted bytes are than the plaintext.
pub const OVERHEAD: usize = 1 + ID + NONCE + TAG;
/// The prefix of a key's text.
const PREFIX: &str = "nstance-key-1-";

/// A key. Clones share it; it is overwritten when the last one is dropped.
#[derive(Clone)]
pub struct Key(Arc<Inner>);

struct Inner {
    secret: Zeroizing<[u8; KEY]>,
    cipher: XChaCha20Poly1305,
    /// The key for deterministic nonces.
    nonces: Zeroizing<[u8; KEY]>,
    id: KeyId,
    /// The keys for the halves of a digest.
    masks: [Aes256; 2],
}

impl Key {
    /// A new random key.
    ///
    /// Fails if the system supplies no random bytes.
    pub fn generate() -> Result<Self, RandomError> {
        let mut secret = Zeroizing::new([0; KEY]);
        getrandom::fill(&mut *secret)?;
        Ok(Self::from_bytes(secret))
    }

    /// The key derived from a passphrase by Argon2id. Deriving it again requires the same
    /// parameters, so store these with the ciphertext.
    ///
    /// Takes a tenth of a second, and the memory in the parameters.
    pub fn from_passphrase(passphrase: &str, derivation: &Derivation) -> Self {
        let Derivation {
            salt,
            memory_kib,
            passes,
            lanes,
        } = derivation;
        let params = Params::new(*memory_kib, *passes, *lanes, Some(KEY))
            .expect("a derivation is within the limits");
        let mut secret = Zeroizing::new([0; KEY]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), salt, &mut *secret)
            .expect("a passphrase is shorter than 4 GiB, and the lengths are right");
        Self::from_bytes(secret)
    }

    fn from_bytes(secret: Zeroizing<[u8; KEY]>) -> Self {
        let derive = |purpose: &str| {
            let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&*secret)
                .expect("HMAC takes keys of any length");
            mac.update(b"nstance ");
            mac.update(purpose.as_bytes());
            Zeroizing::new(<[u8; KEY]>::from(mac.finalize().into_bytes()))
        };
        let cipher = XChaCha20Poly1305::new((&*derive("seal 1")).into());
        let nonces = derive("nonce 1");
        let id = derive("key id 1");
        let id = KeyId(std::array::from_fn(|index| id[index]));
        let masks =
            ["mask 1 left", "mask 1 right"].map(|half| Aes256::new((&*derive(half)).into()));
        Self(Arc::new(Inner {
            secret,
            cipher,
            nonces,
            id,
            masks,
        }))
    }

    /// The key's id.
    pub fn id(&self) -> KeyId {
        self.0.id
    }

    /// The secret key as text, for [`Key::from_str`].
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + 2 * KEY));
        text.push_str(PREFIX);
        for byte in *self.0.secret {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        text
    }

    /// Encrypts bytes for a context.
    ///
    /// Fails if the system supplies no random bytes.
    pub fn seal(&self, context: &Context<'_>, plaintext: &[u8]) -> Result<Vec<u8>, RandomError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce)?;
        Ok(self.seal_with(nonce, context, plaintext))
    }

    /// Encrypts bytes deterministically, for documents that are compared: equal bytes in equal
    /// contexts give equal results. That reveals which parts of two documents are equal, and
    /// nothing else. The nonce is a keyed digest of the context and the bytes.
    pub fn seal_alike(&self, context: &Context<'_>, plaintext: &[u8]) -> Vec<u8> {
        let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&*self.0.nonces)
            .expect("HMAC takes keys of any length");
        let place = context.bytes(&[]);
        mac.update(&(place.len() as u64).to_le_bytes());
        mac.update(&place);
        mac.update(plaintext);
        let digest = mac.finalize().into_bytes();
        self.seal_with(
            std::array::from_fn(|index| digest[index]),
            context,
            plaintext,
        )
    }

    fn seal_with(&self, nonce: [u8; NONCE], context: &Context<'_>, plaintext: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(OVERHEAD + plaintext.len());
        sealed.push(FORMAT);
        sealed.extend(self.0.id.0);
        sealed.extend(nonce);
        let aad = context.bytes(&sealed[..=ID]);
        let payload = Payload {
            msg: plaintext,
            aad: &aad,
        };
        let ciphertext = self
            .0
            .cipher
            .encrypt(&nonce.into(), payload)
            .expect("what is sealed is shorter than 256 GiB");
        sealed.extend(ciphertext);
        sealed
    }

    /// Decrypts bytes of a context.
    ///
    /// Fails with [`OpenError::WrongKey`] if another key encrypted them, and with
    /// [`OpenError::Damaged`] if they were changed or encrypted for another context.
    pub fn open(&self, context: &Context<'_>, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let needed = key_of(sealed)?;
        if needed != self.0.id {
            let given = self.0.id;
            return Err(OpenError::WrongKey { needed, given });
        }
        let (head, rest) = sealed.split_at(1 + ID);
        let (nonce, msg) = rest.split_at(NONCE);
        let nonce = <[u8; NONCE]>::try_from(nonce).map_err(|_| OpenError::NotSealed)?;
        let aad = context.bytes(head);
        self.0
            .cipher
            .decrypt(&nonce.into(), Payload { msg, aad: &aad })
            .map_err(|_| OpenError::Damaged)
    }

    /// A masked digest, which can't be compared with a guess without the key. Equal digests have
    /// equal masks, so that they can be looked up.
    pub fn mask(&self, digest: [u8; 32]) -> [u8; 32] {
        self.halves(digest, Aes256::encrypt_block)
    }

    /// The digest for a mask.
    pub fn unmask(&self, masked: [u8; 32]) -> [u8; 32] {
        self.halves(masked, Aes256::decrypt_block)
    }

    // Digests are as good as random, so different ones share no half, and each half has its own
    // key. So a block cipher suffices, and is fast.
    fn halves(&self, digest: [u8; 32], turn: impl Fn(&Aes256, &mut Block<Aes256>)) -> [u8; 32] {
        let mut turned = [0; 32];
        let halves = digest.chunks_exact(16).zip(turned.chunks_exact_mut(16));
        for ((half, turned), cipher) in halves.zip(&self.0.masks) {
            let mut block = Block::<Aes256>::default();
            block.copy_from_slice(half);
            turn(cipher, &mut block);
            turned.copy_from_slice(&block);
        }
        turned
    }

    /// A keyed name for a text, which can't be compared with a guess without the key.
    pub fn name(&self, purpose: &str, text: &str) -> String {
        let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&*self.0.secret)
            .expect("HMAC takes keys of any length");
        for part in ["nstance name 1", purpose, text] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        hex(&mac.finalize().into_bytes())
    }
}

/// The key that encrypted bytes require.
///
/// Fails if they aren't encrypted.
pub fn key_of(sealed: &[u8]) -> Result<KeyId, OpenError> {
    match sealed.split_first() {
        Some((&FORMAT, rest)) if sealed.len() >= OVERHEAD => {
            Ok(KeyId(std::array::from_fn(|index| rest[index])))
        }
        _ => Err(OpenError::NotSealed),
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({}, secret)", self.0.id)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Key {}

/// The error that a text isn't a key. It doesn't include the text, which may still be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("it is no key: one is \"{PREFIX}\" and 64 hexadecimal digits")]
pub struct ParseKeyError;

impl FromStr for Key {
    type Err = ParseKeyError;

    /// Parses a key written by [`Key::to_text`]; ignores surrounding whitespace.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim().strip_prefix(PREFIX).ok_or(ParseKeyError)?;
        let mut secret = Zeroizing::new([0; KEY]);
        unhex(digits, &mut *secret).ok_or(ParseKeyError)?;
        Ok(Self::from_bytes(secret))
    }
}

/// Identifies a key without revealing it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; ID]);

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

/// The error that a text isn't a key's id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("it names no key: a key's id is 16 hexadecimal digits")]
pub struct ParseKeyIdError;

impl FromStr for KeyId {
    type Err = ParseKeyIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut id = [0; ID];
        unhex(text, &mut id).ok_or(ParseKeyIdError)?;
        Ok(Self(id))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyId({self})")
    }
}

/// How a key is derived from a passphrase. Not secret; stored with the ciphertext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    salt: [u8; 16],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl Derivation {
    /// A new salt with the default parameters: 64 MiB, three passes. This is the second choice of
    /// RFC 9106, except with one lane, since lanes aren't computed in parallel here.
    ///
    /// Fails if the system supplies no random bytes.
    pub fn generate() -> Result<Self, RandomError> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)?;
        Ok(Self {
            salt,
            memory_kib: 64 * 1024,
            passes: 3,
            lanes: 1,
        })
    }
}

impl fmt::Display for Derivation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            salt,
            memory_kib,
            passes,
            lanes,
        } = self;
        let salt = hex(salt);
        write!(
            formatter,
            "argon2id:m={memory_kib},t={passes},p={lanes}:{salt}"
        )
    }
}

/// The error that a text isn't a [`Derivation`], or requires too much memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" doesn't say how a passphrase becomes a key")]
pub struct ParseDerivationError(String);

impl FromStr for Derivation {
    type Err = ParseDerivationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (costs, digits) = text.strip_prefix("argon2id:")?.split_once(':')?;
            let mut costs = costs.split(',');
            let mut cost = |name: &str| -> Option<u32> {
                let value = costs.next()?.strip_prefix(name)?.strip_prefix('=')?;
                value.parse().ok()
            };
            let (memory_kib, passes, lanes) = (cost("m")?, cost("t")?, cost("p")?);
            let mut salt = [0; 16];
            unhex(digits, &mut salt)?;
            // The file is untrusted, so limit its memory to a gibibyte.
            let usable = (1..=64).contains(&passes)
                && (1..=16).contains(&lanes)
                && (8 * lanes..=1024 * 1024).contains(&memory_kib);
            usable.then_some(Self {
                salt,
                memory_kib,
                passes,
                lanes,
            })
        };
        read().ok_or_else(|| ParseDerivationError(text.chars().take(100).collect()))
    }
}

/// The context of encrypted bytes; they don't decrypt in another.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The lineage of the state.
    pub lineage: &'a str,
    /// The table, or the kind of file.
    pub table: &'a str,
    /// The row's key in the table.
    pub row: &'a [&'a [u8]],
    /// The version of the row.
    pub version: u64,
}

impl Context<'_> {
    /// Each part prefixed with its length, so that different contexts have different bytes.
    fn bytes(&self, head: &[u8]) -> Vec<u8> {
        let Self {
            lineage,
            table,
            row,
            version,
        } = self;
        let mut bytes = Vec::with_capacity(192);
        let parts = [head, lineage.as_bytes(), table.as_bytes()];
        for part in parts.iter().chain(*row) {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(*part);
        }
        bytes.extend(version.to_le_bytes());
        bytes
    }
}

/// The system supplies no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system gives no random bytes: {0}")]
pub struct RandomError(#[from] getrandom::Error);

/// Why bytes can't be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// They were encrypted with another key.
    #[error("it is sealed with the key {needed}, and this is {given}")]
    WrongKey {
        /// The required key.
        needed: KeyId,
        /// The given key.
        given: KeyId,
    },
    /// They were changed, or encrypted for another context.
    #[error("it was changed or moved after it was sealed")]
    Damaged,
    /// They were never encrypted, or were truncated.
    #[error("it isn't sealed")]
    NotSealed,
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Parses hex digits for all of `bytes`; `None` if they don't match.
fn unhex(digits: &str, bytes: &mut [u8]) -> Option<()> {
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(())
}

/// The required key, and how to derive it from a passphrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNeed {
    /// The key's id.
    pub id: KeyId,
    /// The derivation, if the key is from a passphrase.
    pub derivation: Option<Derivation>,
}

/// A new key for a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// The key.
    pub key: Key,
    /// The derivation, if the key is from a passphrase.
    pub derivation: Option<Derivation>,
}

impl From<Key> for NewKey {
    fn from(key: Key) -> Self {
        let derivation = None;
        Self { key, derivation }
    }
}

#[cfg(test)]
mod tests;
