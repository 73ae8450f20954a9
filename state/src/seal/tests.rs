use std::collections::HashSet;

use super::*;
use crate::model::SpecDigest;

const CONTEXT: Context<'_> = Context {
    lineage: "lineage",
    table: "specs",
    row: &[b"digest", b"more"],
    version: 3,
};

fn key(seed: u8) -> Key {
    Key::from_bytes(Zeroizing::new([seed; KEY]))
}

#[test]
fn what_is_sealed_opens() {
    let key = Key::generate().unwrap();
    for plaintext in [&b""[..], b"a", &[7; 10_000]] {
        let sealed = key.seal(&CONTEXT, plaintext).unwrap();
        assert_eq!(sealed.len(), OVERHEAD + plaintext.len());
        assert_eq!(key_of(&sealed), Ok(key.id()));
        assert_eq!(key.open(&CONTEXT, &sealed).unwrap(), plaintext);
    }
}

#[test]
fn the_same_bytes_are_never_sealed_the_same_way() {
    let sealed: HashSet<Vec<u8>> = (0..1000)
        .map(|_| key(1).seal(&CONTEXT, b"secret").unwrap())
        .collect();
    assert_eq!(sealed.len(), 1000);
    let clear = |sealed: &Vec<u8>| sealed.windows(6).any(|window| window == b"secret");
    assert!(!sealed.iter().any(clear));
}

#[test]
fn nothing_opens_in_another_place() {
    let sealed = key(1).seal(&CONTEXT, b"secret").unwrap();
    let others = [
        Context {
            lineage: "lineages",
            ..CONTEXT
        },
        Context {
            lineage: "lineagesp",
            table: "ecs",
            ..CONTEXT
        },
        Context {
            table: "journal",
            ..CONTEXT
        },
        Context {
            row: &[b"digest"],
            ..CONTEXT
        },
        Context {
            row: &[b"digestm", b"ore"],
            ..CONTEXT
        },
        Context {
            row: &[b"more", b"digest"],
            ..CONTEXT
        },
        Context {
            version: 2,
            ..CONTEXT
        },
    ];
    for other in others {
        assert_eq!(key(1).open(&other, &sealed), Err(OpenError::Damaged));
    }
}

#[test]
fn every_changed_bit_is_noticed() {
    let sealed = key(1).seal(&CONTEXT, b"secret").unwrap();
    for bit in 0..sealed.len() * 8 {
        let mut changed = sealed.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = key(1).open(&CONTEXT, &changed).unwrap_err();
        let expected = match bit / 8 {
            0 => matches!(error, OpenError::NotSealed),
            1..=ID => matches!(error, OpenError::WrongKey { .. }),
            _ => error == OpenError::Damaged,
        };
        assert!(expected, "bit {bit}: {error}");
    }
    for length in 0..sealed.len() {
        assert!(key(1).open(&CONTEXT, &sealed[..length]).is_err());
    }
    assert_eq!(
        key(1).open(&CONTEXT, &[&sealed[..], b"x"].concat()),
        Err(OpenError::Damaged)
    );
}

#[test]
fn a_wrong_key_is_named_and_not_taken_for_damage() {
    let sealed = key(1).seal(&CONTEXT, b"secret").unwrap();
    assert_eq!(
        key(2).open(&CONTEXT, &sealed),
        Err(OpenError::WrongKey {
            needed: key(1).id(),
            given: key(2).id()
        })
    );
}

#[test]
fn a_key_is_read_as_it_is_written() {
    let key = Key::generate().unwrap();
    let text = key.to_text();
    assert!(text.starts_with(PREFIX));
    let padded = format!("\n {}\r\n", *text);
    assert_eq!(padded.parse::<Key>().unwrap().to_text(), text);
    for wrong in [
        "",
        "nstance-key-1-",
        &text[1..],
        &text[..text.len() - 1],
        &format!("{}0", *text),
        &format!("{PREFIX}{}", "g".repeat(64)),
        &format!("{PREFIX}{}", "ä".repeat(32)),
    ] {
        let error = wrong.parse::<Key>().unwrap_err().to_string();
        assert!(!error.contains(&text[20..]), "{error}");
    }
}

// Computed by another implementation, from RFC 8439, draft-irtf-cfrg-xchacha and OpenSSL's AES.
const KNOWN_ID: &str = "dd7fee13fcc6336b";
const KNOWN_MASK: &str = "0c91bdb3c3f84fe1d018f84a35542f1fcd96b8d0edce9bff2bcbb4c0cc2ec425";
const KNOWN_SEALED: &str = "01dd7fee13fcc6336b000102030405060708090a0b0c0d0e0f1011121314151617b94c5819aedf9a44234797da83f7f126cc80895ecd32";

#[test]
fn a_key_and_its_id_stay_what_they_are() {
    // Released states depend on it.
    assert_eq!(key(1).id().to_string(), KNOWN_ID);
    assert_eq!(SpecDigest(key(1).mask([9; 32])).to_string(), KNOWN_MASK);
    let mut bytes = vec![0; KNOWN_SEALED.len() / 2];
    unhex(KNOWN_SEALED, &mut bytes).unwrap();
    assert_eq!(key(1).open(&CONTEXT, &bytes).unwrap(), b"secret");
}

#[test]
fn debug_tells_no_key() {
    let text = key(0xab).to_text();
    let shown = format!("{:?}", key(0xab));
    assert!(!shown.contains("abab"), "{shown}");
    assert!(text.contains("abab"));
    assert!(shown.contains(&key(0xab).id().to_string()));
}

#[test]
fn masks_hide_digests_one_to_one() {
    let digests: Vec<[u8; 32]> = (0..=255).map(|seed| [seed; 32]).collect();
    let masked: HashSet<[u8; 32]> = digests.iter().map(|digest| key(1).mask(*digest)).collect();
    assert_eq!(masked.len(), digests.len());
    for digest in digests {
        assert_eq!(key(1).unmask(key(1).mask(digest)), digest);
        assert!(!masked.contains(&digest));
        assert_ne!(key(1).mask(digest), key(2).mask(digest));
        // Equal halves don't show.
        let mask = key(1).mask(digest);
        assert_ne!(mask[..16], mask[16..]);
    }
}

#[test]
fn names_depend_on_key_purpose_and_text() {
    let names: HashSet<String> = [
        key(1).name("url", "a"),
        key(2).name("url", "a"),
        key(1).name("urla", ""),
        key(1).name("url", "b"),
    ]
    .into();
    assert_eq!(names.len(), 4);
    assert_eq!(key(1).name("url", "a"), key(1).name("url", "a"));
}

#[test]
fn a_passphrase_makes_the_same_key_with_the_same_parameters() {
    let derivation: Derivation = "argon2id:m=64,t=1,p=1:000102030405060708090a0b0c0d0e0f"
        .parse()
        .unwrap();
    let first = Key::from_passphrase("correct horse", &derivation);
    let again = Key::from_passphrase("correct horse", &derivation);
    assert_eq!(first.to_text(), again.to_text());
    assert_ne!(first, Key::from_passphrase("correct hors", &derivation));
    for other in [
        "argon2id:m=65,t=1,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=2,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=1,p=2:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=1,p=1:000102030405060708090a0b0c0d0e00",
    ] {
        let other = Key::from_passphrase("correct horse", &other.parse().unwrap());
        assert_ne!(first, other);
    }
}

#[test]
fn derivations_are_read_as_written_and_may_not_ask_for_too_much() {
    let derivation = Derivation::generate().unwrap();
    assert_eq!(derivation.to_string().parse(), Ok(derivation.clone()));
    assert_ne!(Derivation::generate().unwrap(), derivation);
    assert_eq!(derivation.memory_kib, 65_536);
    for wrong in [
        "",
        "argon2id",
        "scrypt:m=64,t=1,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:t=1,m=64,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=1,p=1:0001",
        "argon2id:m=1048577,t=1,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=65,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=0,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=1,p=0:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=64,t=1,p=4294967295:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=7,t=1,p=1:000102030405060708090a0b0c0d0e0f",
        "argon2id:m=8,t=1,p=2:000102030405060708090a0b0c0d0e0f",
    ] {
        assert!(wrong.parse::<Derivation>().is_err(), "{wrong}");
    }
}

#[test]
fn what_is_to_be_compared_is_sealed_alike() {
    let key = key(1);
    let sealed = key.seal_alike(&CONTEXT, b"secret");
    assert_eq!(sealed, key.seal_alike(&CONTEXT, b"secret"));
    assert_eq!(key.open(&CONTEXT, &sealed).unwrap(), b"secret");
    // Nothing else is: no nonce serves twice.
    let elsewhere = Context {
        version: 4,
        ..CONTEXT
    };
    let others = [
        key.seal_alike(&CONTEXT, b"secreT"),
        key.seal_alike(&elsewhere, b"secret"),
        self::key(2).seal_alike(&CONTEXT, b"secret"),
    ];
    let nonce = |sealed: &[u8]| sealed[1 + ID..][..NONCE].to_vec();
    let nonces: HashSet<Vec<u8>> = others
        .iter()
        .chain([&sealed])
        .map(|sealed| nonce(sealed))
        .collect();
    assert_eq!(nonces.len(), 4);
}
