//! Decimal text to binary numbers and back. Comes in: text, or a mantissa with its exponent. Goes
//! out: the nearest number, or the shortest text.

use num_bigint::BigUint;

use super::{LARGEST, Number, NumberError, Repr, WRITTEN};

/// More digits than this before or behind the point no number within the limits needs.
const MOST_DIGITS: i64 = 20_000;

/// `[+-] digits [. digits] [(e|E|p) [+-] digits]`, with digits on one side of the point at least;
/// behind `p` stands a power of two.
pub(super) fn parse(text: &str) -> Result<Number, NumberError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent, binary) = match unsigned.find(['e', 'E', 'p']) {
        Some(at) => {
            let binary = unsigned.as_bytes()[at] == b'p';
            (&unsigned[..at], Some(&unsigned[at + 1..]), binary)
        }
        None => (unsigned, None, false),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
        return Err(NumberError::Syntax);
    }
    let exponent = match exponent {
        None => 0,
        Some(text) => {
            let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
            if unsigned.is_empty() || !digits(unsigned) {
                return Err(NumberError::Syntax);
            }
            // What doesn't fit is beyond every limit below.
            let value = unsigned
                .parse::<i64>()
                .unwrap_or(i64::MAX / 4)
                .min(i64::MAX / 4);
            if text.starts_with('-') { -value } else { value }
        }
    };

    if binary {
        let number = parse(&text[..text.len() - unsigned.len() + mantissa.len()])?;
        return number.scaled(exponent);
    }
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(Number {
            precision: WRITTEN,
            ..Number::ZERO
        });
    }
    // The value is 0.SIGNIFICANT · 10^point
    let point = significant.len() as i64 - fraction.len() as i64 + exponent;
    if point > MOST_DIGITS {
        return Err(NumberError::Overflow);
    }
    if point < -MOST_DIGITS {
        return Ok(Number {
            precision: WRITTEN,
            ..Number::ZERO
        });
    }
    // Digits beyond these are only ever "a little more".
    let kept = significant.len().min(2 * MOST_DIGITS as usize);
    let inexact = significant[kept..].bytes().any(|digit| digit != b'0');
    let mantissa =
        BigUint::parse_bytes(&significant.as_bytes()[..kept], 10).ok_or(NumberError::Syntax)?;
    let power = point - kept as i64;
    let scale = BigUint::from(10u32).pow(power.unsigned_abs() as u32);
    if power >= 0 {
        return Number::rounded(negative, mantissa * scale, 0, inexact, WRITTEN);
    }
    let shift = (i64::from(WRITTEN) + 2 + scale.bits() as i64 - mantissa.bits() as i64).max(0);
    let dividend = mantissa << shift;
    let quotient = &dividend / &scale;
    let inexact = inexact || &quotient * &scale != dividend;
    Number::rounded(negative, quotient, -shift, inexact, WRITTEN)
}

/// The shortest decimal between the two numbers half way to this one's neighbours of `precision`
/// bits; those two count if the mantissa is even, because they then round to it.
pub(super) fn shortest(mantissa: &BigUint, exponent: i64, precision: u16) -> String {
    debug_assert!(exponent.abs() <= 2 * LARGEST);
    // The last bit of `mantissa` is to be half a unit of the precision.
    let shift = i64::from(precision) + 1 - mantissa.bits() as i64;
    let (mantissa, exponent) = if shift >= 0 {
        (mantissa << shift, exponent - shift)
    } else {
        (mantissa >> -shift, exponent - shift)
    };
    let inclusive = !mantissa.bit(1);
    // Times a power of two and, behind the point, of five: whole numbers of 10^-places.
    let places = exponent.min(0).unsigned_abs() as usize;
    let digits = |value: BigUint| -> Vec<u8> {
        let scaled = if exponent >= 0 {
            value << exponent
        } else {
            value * BigUint::from(5u32).pow(places as u32)
        };
        scaled.to_string().into_bytes()
    };
    let (mut lower, mut value, mut upper) = (
        digits(&mantissa - 1u32),
        digits(mantissa.clone()),
        digits(&mantissa + 1u32),
    );
    let width = upper.len();
    for text in [&mut lower, &mut value] {
        let missing = width - text.len();
        text.splice(0..0, std::iter::repeat_n(b'0', missing));
    }
    for text in [&mut lower, &mut value, &mut upper] {
        let kept = text
            .iter()
            .rposition(|&digit| digit != b'0')
            .map_or(0, |last| last + 1);
        text.truncate(kept);
    }
    let at = |text: &[u8], index: usize| text.get(index).copied().unwrap_or(b'0');

    let mut kept = value.len();
    let mut up = false;
    for (index, &digit) in value.iter().enumerate() {
        let (low, high) = (at(&lower, index), at(&upper, index));
        let down_fits = low != digit || inclusive && index + 1 == lower.len();
        let up_fits = digit != high && (inclusive || digit + 1 < high || index + 1 < upper.len());
        if down_fits || up_fits {
            kept = index + 1;
            up = if down_fits && up_fits {
                rounds_up(&value, kept)
            } else {
                up_fits
            };
            break;
        }
    }
    value.truncate(kept);
    if up {
        // Nines carry; there is room in front, since `upper` is at least as wide.
        while value.last() == Some(&b'9') {
            value.pop();
        }
        match value.last_mut() {
            Some(digit) => *digit += 1,
            None => value.push(b'1'),
        }
    }
    place_point(value, width, places)
}

/// Whether the digits up to `kept` are nearer to the next larger; half goes to even.
fn rounds_up(digits: &[u8], kept: usize) -> bool {
    match digits.get(kept) {
        None => false,
        Some(b'5') if kept + 1 == digits.len() => kept > 0 && digits[kept - 1] % 2 == 1,
        Some(next) => *next >= b'5',
    }
}

/// `digits` begin a number of `width` digits, of which `places` stand behind the point.
fn place_point(mut digits: Vec<u8>, width: usize, places: usize) -> String {
    let whole = width.saturating_sub(places);
    if digits.len() < whole {
        digits.resize(whole, b'0');
    }
    let mut text = String::with_capacity(digits.len() + 3);
    let first = digits[..whole]
        .iter()
        .position(|&digit| digit != b'0')
        .unwrap_or(whole);
    text.extend(digits[first..whole].iter().map(|&digit| char::from(digit)));
    if text.is_empty() {
        text.push('0');
    }
    let zeros = places.saturating_sub(width);
    let fraction = &digits[whole..];
    let last = fraction
        .iter()
        .rposition(|&digit| digit != b'0')
        .map_or(0, |last| last + 1);
    if last > 0 {
        text.push('.');
        text.extend(std::iter::repeat_n('0', zeros));
        text.extend(fraction[..last].iter().map(|&digit| char::from(digit)));
    }
    text
}

/// A number's magnitude in decimal: 0.DIGITS · 10^point, without zeros at either end; no digits for
/// zero.
pub(crate) struct Digits {
    /// In ASCII.
    pub(crate) digits: Vec<u8>,
    pub(crate) point: i64,
}

impl Digits {
    /// From digits that have one point or none.
    fn from_text(text: &str) -> Self {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let point = whole.len() as i64 - (all.len() - significant.len()) as i64;
        let digits = significant.trim_end_matches('0').as_bytes().to_vec();
        Self { digits, point }
    }

    /// With `count` digits at most, half to even; below zero there are none, and nothing to round.
    pub(crate) fn rounded(mut self, count: i64) -> Self {
        let Ok(count) = usize::try_from(count) else {
            self.digits.clear();
            return self;
        };
        if count >= self.digits.len() {
            return self;
        }
        let up = rounds_up(&self.digits, count);
        self.digits.truncate(count);
        if up {
            while self.digits.last() == Some(&b'9') {
                self.digits.pop();
            }
            match self.digits.last_mut() {
                Some(last) => *last += 1,
                None => {
                    self.digits.push(b'1');
                    self.point += 1;
                }
            }
        }
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
        }
        self
    }
}

impl Number {
    /// Times two to this power.
    fn scaled(&self, power: i64) -> Result<Self, NumberError> {
        let (negative, mantissa, exponent) = self.parts();
        let exponent = exponent.saturating_add(power);
        Self::rounded(negative, mantissa, exponent, false, self.precision)
    }

    /// Exactly.
    pub(crate) fn digits(&self) -> Digits {
        let (_, mantissa, exponent) = self.parts();
        if exponent >= 0 {
            return Digits::from_text(&(mantissa << exponent).to_string());
        }
        let places = exponent.unsigned_abs() as u32;
        let scaled = (mantissa * BigUint::from(5u32).pow(places)).to_string();
        let mut digits = Digits::from_text(&scaled);
        digits.point -= i64::from(places);
        digits
    }

    /// As few as name this number among those of its precision.
    pub(crate) fn shortest_digits(&self) -> Digits {
        Digits::from_text(self.abs().to_string().as_str())
    }

    /// Without its sign; none if it isn't whole.
    pub(crate) fn magnitude(&self) -> Option<BigUint> {
        match &self.value {
            Repr::Small(small) => Some(small.unsigned_abs().into()),
            Repr::Large(float) if float.exponent >= 0 => {
                Some(float.mantissa.clone() << float.exponent)
            }
            Repr::Large(_) => None,
        }
    }
}
