use proptest::prelude::*;

use super::*;

fn number(text: &str) -> Number {
    Number::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn prints_what_terraform_prints() {
    let third = format!("0.{}5", "3".repeat(154));
    for (got, want) in [
        (number("0.1").add(&number("0.2")), "0.3"),
        (number("1").div(&number("3")), third.as_str()),
        (number("1e3").mul(&number("1.5")), "1500"),
        (number("10").rem(&number("3")), "1"),
        (number("-10").rem(&number("3")), "-1"),
        (number("10.5").rem(&number("3")), "1.5"),
        (
            Ok(number("9999999999999999999999")),
            "9999999999999999999999",
        ),
        (Ok(number("1e30")), "1000000000000000000000000000000"),
        (Ok(number("1e-10")), "0.0000000001"),
        (
            Ok(number("0.99999999999999999999")),
            "0.99999999999999999999",
        ),
        (Ok(number("5.")), "5"),
        (Ok(number("+.5")), "0.5"),
        (Ok(number("-0.000")), "0"),
        (Ok(number("9223372036854775807")), "9223372036854775807"),
        (Ok(number("-9223372036854775808")), "-9223372036854775808"),
        (Ok(number("9223372036854775808")), "9223372036854775808"),
        (Ok(Number::from_f64(0.1).unwrap()), "0.1"),
        (
            Ok(Number::from_f64(1e23).unwrap()),
            "100000000000000000000000",
        ),
        (
            Number::from(1i64).div(&Number::from(3i64)),
            "0.33333333333333333334",
        ),
        (
            Ok(Number::from_f64(1_696_863_709_610_325.3).unwrap()),
            "1696863709610325.2",
        ),
        (Ok(number("-1.5").floor()), "-2"),
        (Ok(number("-1.5").truncate()), "-1"),
    ] {
        assert_eq!(got.unwrap().to_string(), want);
    }
}

#[test]
fn says_why_there_is_no_number() {
    for text in [
        "", "-", ".", "1e", "1e+", "1.2.3", "0x10", " 1", "1 ", "١", "1_000", "NaN", "Inf",
    ] {
        assert_eq!(Number::parse(text), Err(NumberError::Syntax), "{text:?}");
    }
    assert_eq!(Number::parse("1e20001"), Err(NumberError::Overflow));
    assert_eq!(
        Number::parse("1e99999999999999999999"),
        Err(NumberError::Overflow)
    );
    assert_eq!(number("1e-99999999999999999999"), Number::ZERO);
    assert_eq!(
        number("1").div(&number("0")),
        Err(NumberError::DivisionByZero)
    );
    assert_eq!(
        number("1").rem(&number("0")),
        Err(NumberError::DivisionByZero)
    );
    assert_eq!(
        number("1e15000").mul(&number("1e15000")),
        Err(NumberError::Overflow)
    );
}

#[test]
fn fits_machine_numbers_only_if_exact() {
    assert_eq!(number("18446744073709551615").to_u64(), Some(u64::MAX));
    assert_eq!(number("18446744073709551616").to_u64(), None);
    assert_eq!(number("9223372036854775808").to_i64(), None);
    assert_eq!(number("1.5").to_i64(), None);
    assert_eq!(number("-1").to_u64(), None);
    assert_eq!(number("0.1").to_f64().to_bits(), 0.1f64.to_bits());
}

proptest! {
    #[test]
    fn agrees_with_machine_numbers(a in any::<i32>(), b in any::<i32>()) {
        let (x, y) = (Number::from(i64::from(a)), number(&b.to_string()));
        let (wide_a, wide_b) = (i64::from(a), i64::from(b));
        prop_assert_eq!(x.add(&y).unwrap().to_i64(), Some(wide_a + wide_b));
        prop_assert_eq!(x.sub(&y).unwrap().to_i64(), Some(wide_a - wide_b));
        prop_assert_eq!(x.mul(&y).unwrap().to_i64(), Some(wide_a * wide_b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        if b != 0 {
            prop_assert_eq!(x.rem(&y).unwrap().to_i64(), Some(wide_a % wide_b));
            let quotient = x.div(&y).unwrap();
            prop_assert_eq!(quotient.truncate().to_i64(), Some(wide_a / wide_b));
        }
    }

    /// The same digits, but that half way between two Go takes the even one.
    #[test]
    fn floats_print_as_short_as_rust_prints_them(value in prop::num::f64::NORMAL) {
        let printed = Number::from_f64(value).unwrap().to_string();
        prop_assert_eq!(printed.len(), format!("{value}").len(), "{}", printed);
        prop_assert_eq!(printed.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{}", printed);
    }

    #[test]
    fn text_reads_back(text in "[1-9][0-9]{0,40}(\\.[0-9]{0,160}[1-9])?") {
        let value = number(&text);
        prop_assert_eq!(&number(&value.to_string()), &value);
        // 154 digits always survive 512 bits.
        if text.len() < 150 {
            prop_assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn order_is_total(a in "-?[0-9]{1,30}\\.[0-9]{1,5}", b in "-?[0-9]{1,30}\\.[0-9]{1,5}") {
        let (x, y) = (number(&a), number(&b));
        prop_assert_eq!(x.cmp(&y), y.cmp(&x).reverse());
        prop_assert_eq!(x.sub(&y).unwrap().is_negative(), x < y);
    }
}
