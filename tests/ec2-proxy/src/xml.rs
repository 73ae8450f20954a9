//! Documents as moto writes them: elements and text.
//!
//! In: XML. Out: a tree, and XML again. May not: mind comments, processing instructions and
//! attributes that aren't the root's; answers of AWS' APIs have none.

use std::fmt::Write as _;

/// An element: either other elements or text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    /// As written, such as ` xmlns="…"`.
    attributes: String,
    pub children: Vec<Element>,
    pub text: String,
}

impl Element {
    /// An element with a text.
    pub fn leaf(name: &str, text: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            text: text.into(),
            ..Self::default()
        }
    }

    /// An element with others in it.
    pub fn node(name: &str, children: Vec<Element>) -> Self {
        Self {
            name: name.to_owned(),
            children,
            ..Self::default()
        }
    }

    /// The element that a path of names leads to.
    pub fn at(&self, path: &str) -> Option<&Element> {
        path.split('/').try_fold(self, |element, name| {
            element.children.iter().find(|child| child.name == name)
        })
    }

    /// The same, to be changed.
    pub fn at_mut(&mut self, path: &str) -> Option<&mut Element> {
        path.split('/').try_fold(self, |element, name| {
            element.children.iter_mut().find(|child| child.name == name)
        })
    }

    /// The text that a path leads to; empty where it leads nowhere.
    pub fn text_at(&self, path: &str) -> &str {
        self.at(path).map_or("", |element| &element.text)
    }

    /// What stands in the list that a path leads to.
    pub fn items(&self, path: &str) -> &[Element] {
        self.at(path).map_or(&[], |element| &element.children)
    }

    /// Puts an element in the place of the one of its name, or at the end.
    pub fn put(&mut self, element: Element) {
        match self.at_mut(&element.name) {
            Some(found) => *found = element,
            None => self.children.push(element),
        }
    }

    /// Reads a document; the error is what was wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.trim_start();
        while rest.starts_with("<?") || rest.starts_with("<!") {
            let end = rest.find('>').ok_or("a declaration without an end")?;
            rest = rest[end + 1..].trim_start();
        }
        let (root, rest) = read_element(rest)?;
        if rest.trim().is_empty() {
            Ok(root)
        } else {
            Err(format!("something follows the document: {}", head(rest)))
        }
    }

    /// The document, as text.
    pub(crate) fn write(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut String) {
        let _ = write!(out, "<{}{}>", self.name, self.attributes);
        for character in self.text.chars() {
            match character {
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '&' => out.push_str("&amp;"),
                other => out.push(other),
            }
        }
        for child in &self.children {
            child.write_to(out);
        }
        let _ = write!(out, "</{}>", self.name);
    }
}

/// Reads one element, and gives what follows it.
fn read_element(text: &str) -> Result<(Element, &str), String> {
    let wrong = || format!("not an element: {}", head(text));
    let inner = text.strip_prefix('<').ok_or_else(wrong)?;
    let (tag, mut rest) = inner.split_once('>').ok_or_else(wrong)?;
    let (tag, is_empty) = match tag.strip_suffix('/') {
        Some(tag) => (tag, true),
        None => (tag, false),
    };
    let split = tag.find(char::is_whitespace).unwrap_or(tag.len());
    let mut element = Element {
        name: tag[..split].to_owned(),
        attributes: tag[split..].trim_end().to_owned(),
        ..Element::default()
    };
    if is_empty {
        return Ok((element, rest));
    }
    loop {
        let at = rest.find('<').ok_or_else(wrong)?;
        element.text.push_str(&unescape(&rest[..at])?);
        rest = &rest[at..];
        if let Some(end) = rest.strip_prefix("</") {
            let (name, after) = end.split_once('>').ok_or_else(wrong)?;
            if name.trim_end() != element.name {
                return Err(format!("`{}` ends as `{name}`", element.name));
            }
            if !element.children.is_empty() {
                // Only what lays the document out.
                element.text.clear();
            }
            return Ok((element, after));
        }
        let (child, after) = read_element(rest)?;
        element.children.push(child);
        rest = after;
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';').ok_or("`&` without `;`")?;
        let character = match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = name.strip_prefix('#').map(|digits| {
                    let hex = digits.strip_prefix(['x', 'X']);
                    hex.map_or_else(|| digits.parse(), |hex| u32::from_str_radix(hex, 16))
                });
                let character = number.and_then(Result::ok).and_then(char::from_u32);
                character.ok_or_else(|| format!("unknown entity `{name}`"))?
            }
        };
        out.push(character);
        out.push_str(rest);
    }
    Ok(out)
}

fn head(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::Element;

    #[test]
    fn documents_are_read_and_written() {
        let text = r#"<?xml version="1.0"?>
<R xmlns="urn:x"><a> 1 &lt;&#x20AC;&#33;&amp; </a><set>
  <item><b/></item><item><b>2</b></item></set></R>
"#;
        let mut document = Element::parse(text).unwrap();
        assert_eq!(document.text_at("a"), " 1 <€!& ");
        assert_eq!(document.items("set").len(), 2);
        assert_eq!(document.text_at("set/item/b"), "");
        assert_eq!(document.text_at("none/at/all"), "");
        document.put(Element::leaf("a", "<new>"));
        document.put(Element::node("z", vec![Element::leaf("y", "1")]));
        assert_eq!(
            document.write(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<R xmlns=\"urn:x\"><a>&lt;new&gt;</a><set>\
             <item><b></b></item><item><b>2</b></item></set><z><y>1</y></z></R>"
        );
        assert_eq!(Element::parse(&document.write()).unwrap(), document);
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a>&nope;</a>",
            "<a>&</a>",
        ] {
            assert!(Element::parse(text).is_err(), "{text}");
        }
    }
}
