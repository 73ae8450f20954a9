//! Decimal fractions of any size, for `addf` and the like: 0.1 + 0.2 is 0.3.

use num_bigint::{BigInt, Sign};

/// Places behind the point that a quotient has.
const PLACES: i32 = 16;

/// A whole number times a power of ten.
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i32,
}

fn power(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

impl Decimal {
    /// The shortest decimal that stands for a float; none for what isn't a number.
    pub(super) fn from_float(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let shown = format!("{number:e}");
        let (mantissa, exponent) = shown.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        let places = mantissa
            .split_once('.')
            .map_or(0, |(_, places)| places.len());
        Some(Self {
            digits: mantissa.replace('.', "").parse().ok()?,
            exponent: exponent - places as i32,
        })
    }

    /// The nearest float.
    pub(super) fn to_float(&self) -> f64 {
        let shown = format!("{}e{}", self.digits, self.exponent);
        shown.parse().unwrap_or(f64::NAN)
    }

    /// How large it is, in bytes.
    pub(super) fn size(&self) -> usize {
        self.digits.bits() as usize / 8
    }

    /// Its digits at an exponent that isn't greater than its own.
    fn at(&self, exponent: i32) -> BigInt {
        &self.digits * power(self.exponent.abs_diff(exponent))
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self {
            digits: self.at(exponent) + other.at(exponent),
            exponent,
        }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self {
            digits: self.at(exponent) - other.at(exponent),
            exponent,
        }
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self {
            digits: &self.digits * &other.digits,
            exponent: self.exponent.saturating_add(other.exponent),
        }
    }

    /// The quotient, its last place rounded away from zero; none where the divisor is zero.
    pub(super) fn over(&self, other: &Self) -> Option<Self> {
        if other.digits.sign() == Sign::NoSign {
            return None;
        }
        // digits·10^shift / digits, so that the quotient counts units of its last place.
        let shift = self
            .exponent
            .saturating_sub(other.exponent)
            .saturating_add(PLACES);
        let (mut dividend, mut divisor) = (self.digits.clone(), other.digits.clone());
        if shift >= 0 {
            dividend *= power(shift.unsigned_abs());
        } else {
            divisor *= power(shift.unsigned_abs());
        }
        let mut digits = &dividend / &divisor;
        let rest = &dividend - &digits * &divisor;
        let twice: BigInt = rest * 2;
        if twice.magnitude() >= divisor.magnitude() {
            let away = if (dividend.sign() == Sign::Minus) == (divisor.sign() == Sign::Minus) {
                1
            } else {
                -1
            };
            digits += away;
        }
        Some(Self {
            digits,
            exponent: -PLACES,
        })
    }
}
