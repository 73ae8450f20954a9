//! The document of a file; of a large one, two halves of it at once.
//!
//! In: a module's names, and a file. Out: its document. May not: know what blocks become.
//!
//! The second half is evaluated in another thread, with what can be shared of the names: variables
//! and the names of blocks. What needs more (locals, `for_each`, files), is sensitive or wrong, is
//! evaluated again in its turn.

use nstance_hcl::{Body, Item};

use super::blocks::Of;
use super::object_builder::Object;
use super::scope::{At, Module, Names};
use super::{File, Folders, Made, Places};
use crate::config::node::Node;
use crate::threads::{WORTH_A_THREAD, both, cores};

/// The document of a file.
pub(in crate::config) fn document(module: &Module<'_>, file: &File) -> Node {
    let (object, _) = match middle(&file.body).filter(|_| module.twin_of.is_none()) {
        Some(middle) => in_halves(module, file, middle),
        None => {
            let mut object = Object::default();
            items_of(module, file, &file.body.items, &mut object);
            (object, false)
        }
    };
    object.node(module.span(file.body.span))
}

/// The object of a file whose second half has the items from `middle` on, and whether what the other
/// thread made is part of it.
pub(super) fn in_halves(module: &Module<'_>, file: &File, middle: usize) -> (Object, bool) {
    let mut object = Object::default();
    let (first, second) = file.body.items.split_at(middle);
    let (names, folders) = (module.names(), module.folders_anew());
    let ((), beside) = both(
        || items_of(module, file, first, &mut object),
        || evaluate(names, folders, file, second),
    );
    match beside {
        Some((more, made)) if object.takes(&more) => {
            object.extend(more);
            module.take(made);
            (object, true)
        }
        _ => {
            items_of(module, file, second, &mut object);
            (object, false)
        }
    }
}

fn items_of(module: &Module<'_>, file: &File, items: &[Item], object: &mut Object) {
    let at = At {
        module,
        folder: file.folder.as_ref(),
        each: None,
    };
    at.items(Of::Top, "", items, object);
}

/// How many items of a large file are its first half.
fn middle(body: &Body) -> Option<usize> {
    let range = body.span.range();
    if range.len() < WORTH_A_THREAD || cores() < 2 {
        return None;
    }
    let middle = range.start + range.len() / 2;
    Some(body.items.partition_point(|item| {
        let span = match item {
            Item::Attribute(attribute) => attribute.span,
            Item::Block(block) => block.span,
        };
        span.range().start < middle
    }))
}

/// What items give by themselves, and what that leaves behind. `None` where it would leave more
/// if they were evaluated with all others.
fn evaluate(
    names: Names<'_>,
    folders: Folders,
    file: &File,
    items: &[Item],
) -> Option<(Object, Made)> {
    let places = Places::default();
    let mut object = Object::default();
    let module = Module::of(names, &places, &folders);
    let before = module.found();
    items_of(&module, file, items, &mut object);
    let made = module.left_alone(before)?;
    folders.seen().is_empty().then_some((object, made))
}
