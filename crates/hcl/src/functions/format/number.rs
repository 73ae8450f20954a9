//! Numbers as Go's `fmt` lays them out. Comes in: a number, and a verb with its flags. Goes out: the
//! text.

use super::Verb;
use crate::number::{Digits, Number};

impl Verb<'_> {
    fn sign(&self, number: &Number) -> &'static str {
        match number {
            _ if number.is_negative() => "-",
            _ if self.plus => "+",
            _ if self.space => " ",
            _ => "",
        }
    }

    /// None if the number isn't whole.
    pub(super) fn integer(&self, number: &Number) -> Option<String> {
        let magnitude = number.magnitude()?;
        let (base, prefix) = match self.letter {
            'b' => (2, "0b"),
            'o' => (8, "0"),
            'x' => (16, "0x"),
            'X' => (16, "0X"),
            _ => (10, ""),
        };
        let prefix = if self.sharp { prefix } else { "" };
        let mut digits = magnitude.to_str_radix(base);
        if self.letter == 'X' {
            digits.make_ascii_uppercase();
        }
        if self.precision == Some(0) && digits == "0" {
            return Some(String::new());
        }
        let mut zeros = self
            .precision
            .map_or(0, |precision| precision.saturating_sub(digits.len()));
        let sign = self.sign(number);
        let length = sign.len() + prefix.len() + zeros + digits.len();
        let missing = self.width.map_or(0, |width| width.saturating_sub(length));
        let (mut left, mut right) = (0, 0);
        if self.minus {
            right = missing;
        } else if self.zero && self.precision.is_none() {
            zeros = missing;
        } else {
            left = missing;
        }
        let (left, right, zeros) = (" ".repeat(left), " ".repeat(right), "0".repeat(zeros));
        Some(format!("{left}{sign}{prefix}{zeros}{digits}{right}"))
    }

    pub(super) fn float(&self, number: &Number) -> String {
        let laid_out = match self.letter {
            'e' | 'E' => {
                let precision = self.precision.unwrap_or(6);
                exponential(&number.digits().rounded(1 + precision as i64), precision)
            }
            'f' => {
                let precision = self.precision.unwrap_or(6);
                let digits = number.digits();
                let count = digits.point + precision as i64;
                fixed(&digits.rounded(count), precision)
            }
            _ => match self.precision {
                None => unsigned_general(number),
                Some(precision) => {
                    let precision = precision.max(1);
                    let digits = number.digits().rounded(precision as i64);
                    shorter(&digits, precision, false)
                }
            },
        };
        let laid_out = if self.letter.is_ascii_uppercase() {
            laid_out.to_ascii_uppercase()
        } else {
            laid_out
        };
        let sign = self.sign(number);
        let missing = self
            .width
            .map_or(0, |width| width.saturating_sub(sign.len() + laid_out.len()));
        if self.minus {
            format!("{sign}{laid_out}{}", " ".repeat(missing))
        } else if self.zero {
            format!("{sign}{}{laid_out}", "0".repeat(missing))
        } else {
            format!("{}{sign}{laid_out}", " ".repeat(missing))
        }
    }
}

/// With as many digits as it needs, as `%v` shows it.
pub(super) fn general(number: &Number) -> String {
    let sign = if number.is_negative() { "-" } else { "" };
    format!("{sign}{}", unsigned_general(number))
}

fn unsigned_general(number: &Number) -> String {
    let digits = number.shortest_digits();
    let precision = digits.digits.len();
    shorter(&digits, precision, true)
}

/// With an exponent if that is below -4, or not below the precision; below 6 if no precision was
/// asked for.
fn shorter(digits: &Digits, precision: usize, shortest: bool) -> String {
    let count = digits.digits.len();
    let mut most = precision as i64;
    if precision > count && count as i64 >= digits.point {
        most = count as i64;
    }
    if shortest {
        most = 6;
    }
    let exponent = digits.point - 1;
    if exponent < -4 || exponent >= most {
        return exponential(digits, precision.min(count).saturating_sub(1));
    }
    let precision = if precision as i64 > digits.point {
        count
    } else {
        precision
    };
    fixed(digits, (precision as i64 - digits.point).max(0) as usize)
}

fn exponential(digits: &Digits, precision: usize) -> String {
    let digit = |index: usize| {
        digits
            .digits
            .get(index)
            .map_or('0', |digit| char::from(*digit))
    };
    let mut text = String::from(digit(0));
    if precision > 0 {
        text.push('.');
        text.extend((1..=precision).map(digit));
    }
    let exponent = if digits.digits.is_empty() {
        0
    } else {
        digits.point - 1
    };
    let sign = if exponent < 0 { '-' } else { '+' };
    text.push_str(&format!("e{sign}{:02}", exponent.unsigned_abs()));
    text
}

fn fixed(digits: &Digits, precision: usize) -> String {
    let digit = |index: i64| {
        let digit = usize::try_from(index)
            .ok()
            .and_then(|index| digits.digits.get(index));
        digit.map_or('0', |digit| char::from(*digit))
    };
    let mut text = String::new();
    if digits.point <= 0 {
        text.push('0');
    }
    text.extend((0..digits.point).map(digit));
    if precision > 0 {
        text.push('.');
        text.extend((0..precision as i64).map(|index| digit(digits.point + index)));
    }
    text
}
