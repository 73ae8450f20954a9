//! Detects shell expansions, such as `${name:-text}` and `${list[@]}`, which must be escaped as
//! `$${`.

/// The maximum length of an expansion that the hint repeats, in bytes.
const LONGEST_SHOWN: usize = 60;

/// The length in bytes of the shell expansion at the start of a text, and a hint to escape it. It
/// may also be a valid expression, so call this only if parsing or resolving it failed.
pub fn shell_expansion(text: &str) -> Option<(usize, String)> {
    let line = text.lines().next()?;
    let inner = line.strip_prefix("${")?;
    let is_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let unsigned = inner.strip_prefix(['#', '!']).unwrap_or(inner);
    let mut operator = unsigned.trim_start_matches(is_name);
    if operator.len() == unsigned.len() {
        operator = inner.strip_prefix(['@', '*', '#', '?', '$', '!', '-'])?;
    } else if unsigned.len() < inner.len() {
        // `${!prefix*}`
        operator = operator.strip_prefix('*').unwrap_or(operator);
    }
    if let Some(index) = operator.strip_prefix('[') {
        operator = index.split_once(']').filter(|(key, _)| !key.is_empty())?.1;
    }
    if !operator.starts_with(['}', ':', '-', '=', '?', '+', '#', '%', '/', '^', ',', '@']) {
        return None;
    }
    let mut open = 1;
    let braces = operator.match_indices(['{', '}']);
    let end = braces.map(|(at, brace)| (at, if brace == "{" { 1 } else { -1 }));
    let end = end.into_iter().find_map(|(at, change)| {
        open += change;
        (open == 0).then_some(at + 1)
    })?;
    let length = line.len() - operator.len() + end;
    let expansion = &text[..length];
    // Whether a quote needs a backslash depends on the surrounding text.
    let hint = if length > LONGEST_SHOWN || expansion.contains(['"', '\\']) {
        "to pass it to a shell, write `$${` instead of `${`".to_owned()
    } else {
        let escaped = expansion.replace("$${", "${").replace("${", "$${");
        format!("to pass `{expansion}` to a shell, write `{escaped}`")
    };
    Some((length, hint))
}
