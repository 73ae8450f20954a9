//! Converts the parser's character offsets to byte offsets.

/// The last converted offset. The next one is near it, so converting all takes linear time.
pub(crate) struct Marks<'t> {
    text: &'t str,
    ascii: bool,
    characters: usize,
    bytes: usize,
}

impl<'t> Marks<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            ascii: text.is_ascii(),
            characters: 0,
            bytes: 0,
        }
    }

    /// The byte where a character starts; the end of the text for an offset past it.
    pub(crate) fn byte(&mut self, index: usize) -> usize {
        if self.ascii {
            return index.min(self.text.len());
        }
        while self.characters < index {
            let Some(character) = self.text[self.bytes..].chars().next() else {
                break;
            };
            self.bytes += character.len_utf8();
            self.characters += 1;
        }
        while self.characters > index {
            let Some(character) = self.text[..self.bytes].chars().next_back() else {
                break;
            };
            self.bytes -= character.len_utf8();
            self.characters -= 1;
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_forth_and_back() {
        let text = "aé😀\nb";
        let mut marks = Marks::new(text);
        for index in [0, 1, 2, 3, 4, 5, 9, 3, 2, 4, 0, 5] {
            let expected = text
                .char_indices()
                .nth(index)
                .map_or(text.len(), |(at, _)| at);
            assert_eq!(marks.byte(index), expected, "{index}");
        }
        assert_eq!(Marks::new("ab").byte(7), 2);
    }
}
