//! Shows an expression as Go's parse tree prints it: one space between operands.

use super::lex::{Kind, Lexer};
use crate::code::{Site, Source};

/// The source of a node, normalised; for messages only.
pub(crate) fn show(source: &Source, site: Site) -> String {
    let text = &source.text[site.start as usize..site.end as usize];
    let (text, whole_action) = match text.strip_prefix(&*source.left) {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    // A right delimiter that can't occur lets the lexer run to the end of the excerpt.
    let text = text.strip_suffix(&*source.right).unwrap_or(text);
    let mut lexer = Lexer::inside(text, &source.left, "\0");
    let mut shown = String::new();
    let mut previous: Option<(Kind, usize)> = None;
    while let Ok(token) = lexer.next_token() {
        if token.kind == Kind::End {
            break;
        }
        let value = &text[token.start()..token.end()];
        if token.kind == Kind::Space {
            continue;
        }
        if let Some((kind, end)) = previous {
            let joined = kind == Kind::LeftParenthesis
                || token.kind == Kind::RightParenthesis
                || value == ","
                || (token.kind == Kind::Field && end == token.start());
            if !joined {
                shown.push(' ');
            }
        }
        shown.push_str(value);
        previous = Some((token.kind, token.end()));
    }
    if whole_action {
        format!("{}{}{}", source.left, shown, source.right)
    } else {
        shown
    }
}

/// The operands of a command: the function and its arguments, parentheses whole.
pub(crate) fn operands(source: &Source, site: Site) -> impl Iterator<Item = Site> {
    let text = &source.text[site.start as usize..site.end as usize];
    let mut lexer = Lexer::inside(text, &source.left, "\0");
    let mut found: Vec<Site> = Vec::new();
    let (mut depth, mut joined) = (0_u32, false);
    while let Ok(token) = lexer.next_token() {
        match token.kind {
            Kind::End => break,
            Kind::Space if depth == 0 => joined = false,
            kind => {
                let (start, end) = (
                    site.start + token.start() as u32,
                    site.start + token.end() as u32,
                );
                match found.last_mut().filter(|_| joined) {
                    Some(operand) => operand.end = end,
                    None => found.push(Site {
                        position: start,
                        start,
                        end,
                    }),
                }
                joined = true;
                depth = match kind {
                    Kind::LeftParenthesis => depth + 1,
                    Kind::RightParenthesis => depth.saturating_sub(1),
                    _ => depth,
                };
            }
        }
    }
    found.into_iter()
}
