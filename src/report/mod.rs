//! Output for people and programs.
//!
//! In: findings and plans. Out: text and JSON. Must not: print, or decide anything.

mod alike;
mod collapse;
pub mod diagnostic;
pub mod dns;
pub mod doctor;
pub mod events;
mod excerpt;
pub mod github;
pub mod graph;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
mod path;
pub mod review;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod text;
pub mod userdata;
pub mod variables;

pub use text::age;

/// A table with aligned columns; the last one isn't padded.
pub fn table<const N: usize>(header: &[&str; N], rows: &[[String; N]]) -> String {
    let mut widths = header.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let mut line = |cells: [&str; N]| {
        let mut written = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            written.push_str(cell);
            let padding = width - cell.chars().count() + 2;
            written.extend(std::iter::repeat_n(' ', padding));
        }
        text.push_str(written.trim_end());
        text.push('\n');
    };
    line(*header);
    for row in rows {
        line(row.each_ref().map(String::as_str));
    }
    text
}
