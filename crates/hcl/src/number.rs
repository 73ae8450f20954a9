//! Terraform's numbers: binary floats of up to 512 bits, each with its own precision.
//!
//! Comes in: decimal text, machine numbers. Goes out: exact arithmetic, rounded half to even as
//! Go's `big.Float` rounds, and the shortest decimal that reads back. A number read from text has 512
//! bits, one that a function counted has 64 and one that it computed in floating point has 53: that
//! decides how many digits a quotient shows. Exponents are limited, so that no number takes long to
//! print.

mod decimal;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use num_bigint::BigUint;

pub(crate) use decimal::Digits;

/// The precision of what is written in decimal.
const WRITTEN: u16 = 512;
/// The precision of what was counted.
const COUNTED: u16 = 64;
/// The largest size of a number: below two to this power (19,728 digits), and no smaller than its
/// inverse.
const LARGEST: i64 = 65_536;

/// A number. Equality and order are of the value alone.
#[derive(Clone)]
pub struct Number {
    value: Repr,
    precision: u16,
}

/// Each value has one form: what fits into an `i64` is `Small`, and a mantissa is odd.
#[derive(Clone, PartialEq, Eq)]
enum Repr {
    Small(i64),
    Large(Arc<Float>),
}

/// `±mantissa · 2^exponent`
#[derive(Clone, PartialEq, Eq)]
struct Float {
    negative: bool,
    mantissa: BigUint,
    exponent: i64,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// Not a decimal number.
    Syntax,
    /// More than 19,728 digits before the point.
    Overflow,
    DivisionByZero,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "a number is required",
            Self::Overflow => "the number is too large",
            Self::DivisionByZero => "can't divide by zero",
        })
    }
}

impl std::error::Error for NumberError {}

impl Number {
    pub const ZERO: Self = Self {
        value: Repr::Small(0),
        precision: COUNTED,
    };

    /// Reads decimal text: digits, a point, an exponent.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        // Most numbers are short and whole.
        if text.len() < 18
            && !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(small) = text.parse()
        {
            return Ok(Self {
                value: Repr::Small(small),
                precision: WRITTEN,
            });
        }
        decimal::parse(text)
    }

    /// None if it isn't finite.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let bits = value.to_bits();
        let field = (bits >> 52 & 0x7ff) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = if field == 0 {
            (fraction, -1074)
        } else {
            (fraction | 1 << 52, field - 1075)
        };
        Self::rounded(
            value.is_sign_negative(),
            mantissa.into(),
            exponent,
            false,
            53,
        )
        .ok()
    }

    /// The nearest, half to even; infinite beyond its range.
    pub fn to_f64(&self) -> f64 {
        match &self.value {
            Repr::Small(small) => *small as f64,
            // Reading the decimal rounds once, since the decimal names exactly this number among
            // those of its precision.
            Repr::Large(_) => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// None if it isn't whole or doesn't fit.
    pub fn to_i64(&self) -> Option<i64> {
        match &self.value {
            Repr::Small(small) => Some(*small),
            Repr::Large(_) => None,
        }
    }

    /// None if it isn't whole or doesn't fit.
    pub fn to_u64(&self) -> Option<u64> {
        match &self.value {
            Repr::Small(small) => u64::try_from(*small).ok(),
            Repr::Large(float) if float.exponent >= 0 && !float.negative => {
                u64::try_from(&float.mantissa)
                    .ok()?
                    .checked_shl(float.exponent as u32)
                    .filter(|_| float.mantissa.bits() as i64 + float.exponent <= 64)
            }
            Repr::Large(_) => None,
        }
    }

    pub fn is_whole(&self) -> bool {
        match &self.value {
            Repr::Small(_) => true,
            Repr::Large(float) => float.exponent >= 0,
        }
    }

    pub fn is_negative(&self) -> bool {
        match &self.value {
            Repr::Small(small) => *small < 0,
            Repr::Large(float) => float.negative,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.value == Repr::Small(0)
    }

    /// Without what is behind the point.
    #[must_use]
    pub fn truncate(&self) -> Self {
        match &self.value {
            Repr::Large(float) if float.exponent < 0 => Self {
                value: canonical(
                    float.negative,
                    &float.mantissa >> float.exponent.unsigned_abs(),
                    0,
                ),
                precision: self.precision,
            },
            _ => self.clone(),
        }
    }

    /// The largest whole number that isn't larger.
    #[must_use]
    pub fn floor(&self) -> Self {
        let whole = self.truncate();
        if self.is_negative() && whole != *self {
            return whole.sub(&Self::from(1i64)).unwrap_or(whole);
        }
        whole
    }

    #[must_use]
    pub fn neg(&self) -> Self {
        let (negative, mantissa, exponent) = self.parts();
        Self {
            value: canonical(!negative, mantissa, exponent),
            precision: self.precision,
        }
    }

    #[must_use]
    pub fn abs(&self) -> Self {
        if self.is_negative() {
            self.neg()
        } else {
            self.clone()
        }
    }

    pub fn add(&self, other: &Self) -> Result<Self, NumberError> {
        let precision = self.precision.max(other.precision);
        if let (Repr::Small(a), Repr::Small(b)) = (&self.value, &other.value)
            && let Some(sum) = a.checked_add(*b)
            && precision >= COUNTED
        {
            return Ok(Self {
                value: Repr::Small(sum),
                precision,
            });
        }
        let (a_negative, mut a, a_exponent) = self.parts();
        let (b_negative, mut b, b_exponent) = other.parts();
        // Exponents are limited: so are these shifts.
        let exponent = a_exponent.min(b_exponent);
        a <<= a_exponent - exponent;
        b <<= b_exponent - exponent;
        let (negative, sum) = if a_negative == b_negative {
            (a_negative, a + b)
        } else if a >= b {
            (a_negative, a - b)
        } else {
            (b_negative, b - a)
        };
        Self::rounded(negative, sum, exponent, false, precision)
    }

    pub fn sub(&self, other: &Self) -> Result<Self, NumberError> {
        self.add(&other.neg())
    }

    /// Exact up to 512 bits, whatever the precision of both.
    pub fn mul(&self, other: &Self) -> Result<Self, NumberError> {
        let precision = self.precision.max(other.precision);
        if let (Repr::Small(a), Repr::Small(b)) = (&self.value, &other.value)
            && let Some(product) = a.checked_mul(*b)
            && precision >= COUNTED
        {
            return Ok(Self {
                value: Repr::Small(product),
                precision,
            });
        }
        let (a_negative, a, a_exponent) = self.parts();
        let (b_negative, b, b_exponent) = other.parts();
        let mut product = Self::rounded(
            a_negative != b_negative,
            a * b,
            a_exponent + b_exponent,
            false,
            WRITTEN,
        )?;
        let (_, mantissa, _) = product.parts();
        let needed = mantissa.bits() - mantissa.trailing_zeros().unwrap_or(0);
        product.precision = precision.max(needed as u16);
        Ok(product)
    }

    pub fn div(&self, other: &Self) -> Result<Self, NumberError> {
        let (a_negative, a, a_exponent) = self.parts();
        let (b_negative, b, b_exponent) = other.parts();
        if b == BigUint::ZERO {
            return Err(NumberError::DivisionByZero);
        }
        let precision = self.precision.max(other.precision);
        // Two bits more than are kept: with what is left over they decide how to round.
        let shift = (i64::from(precision) + 2 + b.bits() as i64 - a.bits() as i64).max(0);
        let dividend = a << shift;
        let quotient = &dividend / &b;
        let inexact = &quotient * &b != dividend;
        let exponent = a_exponent - b_exponent - shift;
        Self::rounded(
            a_negative != b_negative,
            quotient,
            exponent,
            inexact,
            precision,
        )
    }

    /// What is left of a division rounded towards zero: it has the sign of `self`.
    pub fn rem(&self, other: &Self) -> Result<Self, NumberError> {
        if let (Repr::Small(a), Repr::Small(b)) = (&self.value, &other.value)
            && let Some(rest) = a.checked_rem(*b)
        {
            let precision = self.precision.max(other.precision);
            return Ok(Self {
                value: Repr::Small(rest),
                precision,
            });
        }
        let whole = self.div(other)?.truncate();
        self.sub(&other.mul(&whole)?)
    }

    fn parts(&self) -> (bool, BigUint, i64) {
        match &self.value {
            Repr::Small(small) => (*small < 0, small.unsigned_abs().into(), 0),
            Repr::Large(float) => (float.negative, float.mantissa.clone(), float.exponent),
        }
    }

    /// Rounds to `precision` bits, half to even. `inexact`: there was more behind the last bit.
    fn rounded(
        negative: bool,
        mut mantissa: BigUint,
        mut exponent: i64,
        inexact: bool,
        precision: u16,
    ) -> Result<Self, NumberError> {
        let size = mantissa.bits();
        if size > u64::from(precision) {
            let surplus = size - u64::from(precision);
            let half = mantissa.bit(surplus - 1);
            let rest = inexact
                || mantissa
                    .trailing_zeros()
                    .is_some_and(|zeros| zeros < surplus - 1);
            mantissa >>= surplus;
            exponent += surplus as i64;
            if half && (rest || mantissa.bit(0)) {
                mantissa += 1u32;
            }
        }
        let magnitude = mantissa.bits() as i64 + exponent;
        if magnitude > LARGEST && mantissa != BigUint::ZERO {
            return Err(NumberError::Overflow);
        }
        if magnitude < -LARGEST {
            mantissa = BigUint::ZERO;
        }
        Ok(Self {
            value: canonical(negative, mantissa, exponent),
            precision,
        })
    }
}

fn canonical(negative: bool, mut mantissa: BigUint, mut exponent: i64) -> Repr {
    let Some(zeros) = mantissa.trailing_zeros() else {
        return Repr::Small(0);
    };
    mantissa >>= zeros;
    exponent += zeros as i64;
    if exponent >= 0 && mantissa.bits() as i64 + exponent <= 64 {
        let magnitude = i128::from(u64::try_from(&mantissa).unwrap_or(0)) << exponent;
        if let Ok(small) = i64::try_from(if negative { -magnitude } else { magnitude }) {
            return Repr::Small(small);
        }
    }
    Repr::Large(Arc::new(Float {
        negative,
        mantissa,
        exponent,
    }))
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self {
            value: Repr::Small(value),
            precision: COUNTED,
        }
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self {
            value: canonical(false, value.into(), 0),
            precision: COUNTED,
        }
    }
}

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        Self::parse(text)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Repr::Small(a), Repr::Small(b)) = (&self.value, &other.value) {
            return a.cmp(b);
        }
        let (a_negative, a, a_exponent) = self.parts();
        let (b_negative, b, b_exponent) = other.parts();
        match (a_negative, b_negative) {
            (false, true) => return Ordering::Greater,
            (true, false) => return Ordering::Less,
            _ => {}
        }
        let exponent = a_exponent.min(b_exponent);
        let order = (a << (a_exponent - exponent)).cmp(&(b << (b_exponent - exponent)));
        if a_negative { order.reverse() } else { order }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The shortest decimal that reads back at the number's precision, without an exponent.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Repr::Small(small) if self.precision >= COUNTED || small.unsigned_abs() < 1 << 53 => {
                write!(f, "{small}")
            }
            _ => {
                let (negative, mantissa, exponent) = self.parts();
                let digits = decimal::shortest(&mantissa, exponent, self.precision);
                f.write_str(if negative { "-" } else { "" })?;
                f.write_str(&digits)
            }
        }
    }
}

#[cfg(test)]
mod tests;
