//! Floating-point numbers: Go's `strconv.FormatFloat` under `fmt`'s flags.

use super::formatter::Formatter;

/// More digits than any `f64` has, after the point or in all: beyond it there are only zeros.
const MOST_DIGITS: usize = 1100;

impl Formatter<'_, '_> {
    /// A number under a verb that [`digits`] knows; no precision asks for the shortest form.
    pub(super) fn float(&mut self, number: f64, verb: char, default_precision: Option<usize>) {
        let flags = self.flags;
        let precision = flags.precision.or(default_precision);
        let mut text = Vec::with_capacity(24);
        text.push(if number.is_sign_negative() && !number.is_nan() {
            b'-'
        } else {
            b'+'
        });
        if number.is_nan() {
            text.extend_from_slice(b"NaN");
        } else if number.is_infinite() {
            text.extend_from_slice(b"Inf");
        } else {
            // A precision that the sink can't hold needn't be computed to be refused.
            digits(&mut text, number.abs(), verb, precision);
        }
        if flags.space && text[0] == b'+' && !flags.plus {
            text[0] = b' ';
        }
        if !number.is_finite() {
            // Infinity always has its sign, NaN only where a sign is asked for.
            let plain = number.is_nan() && !flags.space && !flags.plus;
            self.pad_with_spaces(if plain { &text[1..] } else { &text });
            return;
        }
        if flags.sharp && verb != 'b' {
            text = sharpen(&text, verb, precision);
        }
        if !flags.plus && text[0] == b'+' {
            self.pad(&text[1..]);
            return;
        }
        match flags.width {
            // The sign stands before the zeros.
            Some(width) if flags.zero && !flags.minus && width > text.len() => {
                self.sink.push_byte(text[0]);
                self.padding(width - text.len());
                self.sink.push(&text[1..]);
            }
            _ => self.pad(&text),
        }
    }
}

/// `%#g` and its like: always a decimal point, and no trailing zeros removed.
fn sharpen(text: &[u8], verb: char, precision: Option<usize>) -> Vec<u8> {
    let mut wanted = match verb {
        'g' | 'G' | 'x' => precision.unwrap_or(6) as i64,
        _ => 0,
    };
    let hexadecimal = matches!(verb, 'x' | 'X');
    let tail_at = text
        .iter()
        .position(|byte| match byte {
            b'p' | b'P' => true,
            b'e' | b'E' => !hexadecimal,
            _ => false,
        })
        .unwrap_or(text.len());
    let (number, tail) = text.split_at(tail_at);
    let (mut point, mut nonzero) = (false, false);
    for byte in &number[1..] {
        if *byte == b'.' {
            point = true;
            continue;
        }
        nonzero |= *byte != b'0';
        wanted -= i64::from(nonzero);
    }
    let mut output = number.to_vec();
    if !point {
        if number.len() == 2 && number[1] == b'0' {
            wanted -= 1;
        }
        output.push(b'.');
    }
    output.resize(output.len() + wanted.max(0) as usize, b'0');
    output.extend_from_slice(tail);
    output
}

/// The digits of a number that isn't negative.
fn digits(output: &mut Vec<u8>, number: f64, verb: char, precision: Option<usize>) {
    match verb {
        'b' => binary(output, number),
        'x' | 'X' => hexadecimal(output, number, verb, precision),
        'f' => fixed(output, number, precision),
        'e' | 'E' => {
            let decimal = Decimal::new(number, precision.map(|precision| precision + 1));
            decimal.scientific(output, precision, verb);
        }
        _ => general(output, number, verb, precision),
    }
}

/// The fewest digits that stand for the number, and of those the nearest to it, in scientific
/// notation. Where two are equally near, Go takes the even one and Rust the greater one; Rust rounds
/// to even where it is told how many digits.
fn shortest(number: f64) -> String {
    /// With fewer digits, what is half-way between two of them is a number of its own.
    const TIES_FROM: usize = 15;
    let text = format!("{number:e}");
    let digits = text.find('e').unwrap_or(text.len()).saturating_sub(1);
    if digits < TIES_FROM {
        return text;
    }
    let even = format!("{number:.*e}", digits - 1);
    // At a power of two the nearest digits may stand for the number below.
    if even.parse() == Ok(number) {
        even
    } else {
        text
    }
}

/// Significant decimal digits, `0.d₁d₂… × 10^point`.
struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

impl Decimal {
    /// The shortest digits that stand for the number, or so many, rounded.
    fn new(number: f64, count: Option<usize>) -> Self {
        let text = match count {
            None => shortest(number),
            Some(count) => format!("{number:.*e}", count.clamp(1, MOST_DIGITS) - 1),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut digits: Vec<u8> = mantissa.bytes().filter(|byte| *byte != b'.').collect();
        let kept = digits
            .iter()
            .rposition(|digit| *digit != b'0')
            .map_or(0, |last| last + 1);
        digits.truncate(kept);
        let exponent: i32 = exponent.parse().unwrap_or(0);
        Self {
            point: if digits.is_empty() { 0 } else { exponent + 1 },
            digits,
        }
    }

    fn digit(&self, index: i64) -> u8 {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.digits.get(index))
            .copied()
            .unwrap_or(b'0')
    }

    /// `d.ddde±dd` with so many digits after the point, or all.
    fn scientific(&self, output: &mut Vec<u8>, precision: Option<usize>, verb: char) {
        output.push(self.digit(0));
        let fraction = precision.unwrap_or(self.digits.len().saturating_sub(1));
        if fraction > 0 {
            output.push(b'.');
            let given = self.digits.get(1..).unwrap_or_default();
            output.extend_from_slice(&given[..fraction.min(given.len())]);
            output.resize(output.len() + fraction.saturating_sub(given.len()), b'0');
        }
        let exponent = if self.digits.is_empty() {
            0
        } else {
            self.point - 1
        };
        let sign = if exponent < 0 { '-' } else { '+' };
        let exponent = exponent.abs();
        output.extend_from_slice(format!("{verb}{sign}{exponent:02}").as_bytes());
    }

    /// `ddd.ddd` with so many digits after the point.
    fn positional(&self, output: &mut Vec<u8>, fraction: usize) {
        if self.point > 0 {
            output.extend((0..i64::from(self.point)).map(|index| self.digit(index)));
        } else {
            output.push(b'0');
        }
        if fraction > 0 {
            output.push(b'.');
            let first = i64::from(self.point);
            output.extend((first..first + fraction as i64).map(|index| self.digit(index)));
        }
    }
}

fn fixed(output: &mut Vec<u8>, number: f64, precision: Option<usize>) {
    match precision {
        None => {
            let decimal = Decimal::new(number, None);
            let fraction = decimal.digits.len() as i64 - i64::from(decimal.point);
            decimal.positional(output, fraction.max(0) as usize);
        }
        Some(precision) => {
            let computed = precision.min(MOST_DIGITS);
            output.extend_from_slice(format!("{number:.computed$}").as_bytes());
            output.resize(output.len() + precision - computed, b'0');
        }
    }
}

fn general(output: &mut Vec<u8>, number: f64, verb: char, precision: Option<usize>) {
    let wanted = precision.map(|precision| precision.max(1));
    let decimal = Decimal::new(number, wanted);
    let count = decimal.digits.len();
    let mut threshold = wanted.unwrap_or(6);
    if threshold > count && count as i64 >= i64::from(decimal.point) {
        threshold = count;
    }
    if wanted.is_none() {
        threshold = 6;
    }
    let exponent = i64::from(decimal.point) - 1;
    if exponent < -4 || exponent >= threshold as i64 {
        let fraction = wanted
            .map_or(count, |wanted| wanted.min(count))
            .saturating_sub(1);
        let verb = if verb == 'G' { 'E' } else { 'e' };
        decimal.scientific(output, Some(fraction), verb);
    } else {
        let fraction = (count as i64 - i64::from(decimal.point)).max(0);
        decimal.positional(output, fraction as usize);
    }
}

/// The mantissa and the exponent of `mantissa × 2^(exponent - 52)`.
fn parts(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    if biased == 0 {
        (mantissa, -1022)
    } else {
        (mantissa | 1 << 52, biased - 1023)
    }
}

/// `%b`: `4503599627370496p-52`.
fn binary(output: &mut Vec<u8>, number: f64) {
    let (mantissa, exponent) = parts(number);
    let exponent = exponent - 52;
    output.extend_from_slice(format!("{mantissa}p{exponent:+}").as_bytes());
}

/// `%x`: `0x1.8p+01`.
fn hexadecimal(output: &mut Vec<u8>, number: f64, verb: char, precision: Option<usize>) {
    const ONE: u64 = 1 << 60;
    let (mantissa, mut exponent) = parts(number);
    let mut mantissa = mantissa << 8;
    if mantissa == 0 {
        exponent = 0;
    }
    while mantissa != 0 && mantissa & ONE == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let shift = precision as u32 * 4;
        let extra = mantissa << shift & (ONE - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & ONE << 1 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", mantissa & (ONE - 1));
    let shown = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) => format!(
            "{digits:0<precision$}",
            precision = precision.min(MOST_DIGITS)
        )[..precision.min(MOST_DIGITS)]
            .to_owned(),
    };
    let zeros = precision.unwrap_or(0).saturating_sub(MOST_DIGITS);
    let point = if shown.is_empty() { "" } else { "." };
    let zeros = "0".repeat(zeros);
    let sign = if exponent < 0 { '-' } else { '+' };
    let lead = mantissa >> 60;
    let exponent = exponent.abs();
    let mut text = format!("0x{lead}{point}{shown}{zeros}p{sign}{exponent:02}");
    if verb == 'X' {
        text = text.to_ascii_uppercase();
    }
    output.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::shortest;

    #[test]
    fn of_two_shortest_numbers_the_even_one_is_taken() {
        let cases = [
            (2_f64.powi(50) + 0.25, "1.1258999068426242e15"),
            (2_f64.powi(50) + 0.75, "1.1258999068426248e15"),
            (0.1, "1e-1"),
            (1.5, "1.5e0"),
            (5e-324, "5e-324"),
            // A power of two: the numbers below it lie closer than those above.
            (2_f64.powi(-44), "5.684341886080802e-14"),
            (9_007_199_254_740_992.0, "9.007199254740992e15"),
        ];
        for (number, expected) in cases {
            assert_eq!(shortest(number), expected);
            assert_eq!(expected.parse(), Ok(number));
        }
    }
}
