//! Joins layers of userdata, once for all instances with equal layers.
//!
//! In: [`RenderedLayer`]s. Out: the joined userdata. Must not: depend on where they were written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use nstance_cloudinit::layers::{Joined, Layer, LayerFinding, join};
use sha2::{Digest, Sha256};

use super::rendered_layer::RenderedLayer;

/// Joined layers, without what only an explanation needs.
pub(super) struct Joint {
    /// The instance's userdata.
    pub(super) bytes: Vec<u8>,
    pub(super) findings: Vec<LayerFinding>,
    /// The layers, and the number of bytes from each.
    pub(super) shares: Vec<(&'static str, usize)>,
    /// Whether all of it is one cloud-config.
    pub(super) is_config: bool,
}

impl Joint {
    fn new(layers: &[RenderedLayer]) -> Self {
        let joined = joined(layers);
        let is_config = is_config(&joined);
        let names = layers.iter().map(|layer| layer.name);
        Self {
            bytes: joined.bytes,
            findings: joined.findings,
            shares: names.zip(joined.shares).collect(),
            is_config,
        }
    }
}

/// Whether the result is one cloud-config and nothing else.
fn is_config(joined: &Joined) -> bool {
    joined.config.is_some() && joined.parts.len() == 1
}

/// Joins layers, with the details for an explanation.
pub(super) fn joined(layers: &[RenderedLayer]) -> Joined {
    let layers: Vec<_> = layers
        .iter()
        .map(|layer| Layer {
            name: layer.name.to_owned(),
            mode: layer.mode,
            parts: layer.parts.clone(),
            included: layer.included.clone(),
        })
        .collect();
    join(&layers)
}

/// The cache of joined layers, shared by all groups. A group whose userdata doesn't depend on the
/// instance is joined once, and so are equal groups.
#[derive(Default)]
pub(super) struct Joins {
    made: Mutex<HashMap<[u8; 32], Arc<Joint>>>,
}

impl Joins {
    /// The capacity. Userdata that depends on the instance adds an entry for each, which is never
    /// used again.
    const ROOM: usize = 256;

    /// The result of joining these layers.
    pub(super) fn get(&self, layers: &[RenderedLayer]) -> Arc<Joint> {
        let key = key_of(layers);
        if let Ok(made) = self.made.lock()
            && let Some(joint) = made.get(&key)
        {
            return Arc::clone(joint);
        }
        let joint = Arc::new(Joint::new(layers));
        if let Ok(mut made) = self.made.lock() {
            if made.len() >= Self::ROOM {
                made.clear();
            }
            made.insert(key, Arc::clone(&joint));
        }
        joint
    }
}

/// A digest of all inputs of the result; each text is prefixed with its length.
fn key_of(layers: &[RenderedLayer]) -> [u8; 32] {
    fn add(hasher: &mut Sha256, text: Option<&[u8]>) {
        hasher.update(
            text.map_or(u64::MAX, |text| text.len() as u64)
                .to_le_bytes(),
        );
        hasher.update(text.unwrap_or_default());
    }
    let mut hasher = Sha256::new();
    for layer in layers {
        add(&mut hasher, Some(layer.name.as_bytes()));
        // The body of a URL doesn't change within a run.
        hasher.update([layer.mode as u8, layer.included.is_some().into()]);
        hasher.update((layer.parts.len() as u64).to_le_bytes());
        for part in &layer.parts {
            add(&mut hasher, Some(&part.content));
            for header in [&part.content_type, &part.filename, &part.merge] {
                add(&mut hasher, header.as_deref().map(str::as_bytes));
            }
        }
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use nstance_cloudinit::layers::{LayerPart, Mode};

    use super::*;

    fn layer(content: &str) -> RenderedLayer {
        RenderedLayer {
            name: "group",
            mode: Mode::Nstance,
            parts: vec![LayerPart::new(content)],
            included: None,
            files: Vec::new(),
            sensitive: Vec::new(),
        }
    }

    #[test]
    fn what_differs_in_anything_has_a_key_of_its_own() {
        let named = |filename: &str| {
            let mut named = layer("a");
            named.parts[0].filename = Some(filename.to_owned());
            named
        };
        let typed = || {
            let mut typed = layer("a");
            typed.parts[0].content_type = Some("x".to_owned());
            typed
        };
        let replaced = RenderedLayer {
            mode: Mode::Replace,
            ..layer("a")
        };
        let fetched = RenderedLayer {
            included: Some(Arc::default()),
            ..layer("a")
        };
        let keys = [
            key_of(&[layer("a")]),
            key_of(&[layer("b")]),
            key_of(&[layer("")]),
            key_of(&[layer("a"), layer("")]),
            key_of(&[named("x")]),
            key_of(&[named("")]),
            key_of(&[typed()]),
            key_of(&[replaced]),
            key_of(&[fetched]),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{index}");
        }
    }

    #[test]
    fn equal_layers_are_joined_once() {
        let joins = Joins::default();
        let one = joins.get(&[layer("#cloud-config\na: 1\n")]);
        let same = joins.get(&[layer("#cloud-config\na: 1\n")]);
        assert!(Arc::ptr_eq(&one, &same));
        for number in 0..Joins::ROOM {
            joins.get(&[layer(&format!("#!/bin/sh\necho {number}\n"))]);
        }
        let anew = joins.get(&[layer("#cloud-config\na: 1\n")]);
        assert!(!Arc::ptr_eq(&one, &anew));
        assert_eq!(one.bytes, anew.bytes);
    }
}
