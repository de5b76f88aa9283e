//! Numbers that were written with a unit: what they are in SI units.

/// A unit, and by what its numbers are multiplied and then divided to get SI units.
const UNITS: [(&str, f64, f64); 62] = [
    ("s", 1.0, 1.0),
    ("ms", 1.0, 1e3),
    ("us", 1.0, 1e6),
    ("µs", 1.0, 1e6),
    ("min", 60.0, 1.0),
    ("h", 3600.0, 1.0),
    ("m", 1.0, 1.0),
    ("km", 1e3, 1.0),
    ("dm", 1.0, 10.0),
    ("cm", 1.0, 1e2),
    ("mm", 1.0, 1e3),
    ("um", 1.0, 1e6),
    ("µm", 1.0, 1e6),
    ("kg", 1.0, 1.0),
    ("g", 1.0, 1e3),
    ("t", 1e3, 1.0),
    ("kg/m3", 1.0, 1.0),
    ("kg/m^3", 1.0, 1.0),
    ("kg/m³", 1.0, 1.0),
    ("g/cm3", 1e3, 1.0),
    ("g/cm^3", 1e3, 1.0),
    ("g/cm³", 1e3, 1.0),
    ("t/m3", 1e3, 1.0),
    ("t/m^3", 1e3, 1.0),
    ("t/m³", 1e3, 1.0),
    ("m/s", 1.0, 1.0),
    ("mm/s", 1.0, 1e3),
    ("cm/s", 1.0, 1e2),
    ("km/h", 1.0, 3.6),
    ("m/s2", 1.0, 1.0),
    ("m/s^2", 1.0, 1.0),
    ("m/s²", 1.0, 1.0),
    ("rad", 1.0, 1.0),
    ("mrad", 1.0, 1e3),
    ("deg", std::f64::consts::PI, 180.0),
    ("degree", std::f64::consts::PI, 180.0),
    ("degrees", std::f64::consts::PI, 180.0),
    ("°", std::f64::consts::PI, 180.0),
    ("rad/s", 1.0, 1.0),
    ("deg/s", std::f64::consts::PI, 180.0),
    ("°/s", std::f64::consts::PI, 180.0),
    ("rpm", std::f64::consts::PI, 30.0),
    ("Hz", 1.0, 1.0),
    ("kHz", 1e3, 1.0),
    ("N", 1.0, 1.0),
    ("kN", 1e3, 1.0),
    ("MN", 1e6, 1.0),
    ("N/m", 1.0, 1.0),
    ("N/mm", 1e3, 1.0),
    ("kN/m", 1e3, 1.0),
    ("kN/mm", 1e6, 1.0),
    ("Nm", 1.0, 1.0),
    ("N m", 1.0, 1.0),
    ("kNm", 1e3, 1.0),
    ("kN m", 1e3, 1.0),
    ("N s/m", 1.0, 1.0),
    ("Ns/m", 1.0, 1.0),
    ("Pa", 1.0, 1.0),
    ("kPa", 1e3, 1.0),
    ("MPa", 1e6, 1.0),
    ("J", 1.0, 1.0),
    ("%", 1.0, 1e2),
];

/// "found …, expected …" if the text is a number with a unit, which is not a name that formulas know.
pub(super) fn explain(text: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let text = text.trim().trim_matches('"').trim();
    // The longest beginning that is a number: in "1e-3 m" the exponent belongs to it.
    let places = text.char_indices().map(|(place, _)| place).filter(|place| *place > 0);
    let number = |place: usize| Some((text[..place].trim_end().parse::<f64>().ok()?, text[place..].trim()));
    let (number, unit) = places.rev().find_map(number)?;
    if is_known(unit) {
        return None;
    }
    let (_, factor, divisor) = UNITS.iter().find(|(name, _, _)| *name == unit)?;
    let value = number * factor / divisor;
    Some(format!("found {text:?}, expected a number in SI units without a unit: write {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_is_said_in_si_units() {
        for (text, written) in [
            ("5 ms", "0.005"),
            ("35mm", "0.035"),
            (" 2.7 g/cm³ ", "2700.0"),
            ("1e-3 km", "1.0"),
            ("36 km/h", "10.0"),
            ("180°", "3.141592653589793"),
            ("-4 kN", "-4000.0"),
            ("2 m", "2.0"),
        ] {
            let message = explain(text, |_| false).unwrap_or_default();
            assert!(message.ends_with(&format!("without a unit: write {written}")), "{text}: {message}");
        }
    }

    #[test]
    fn formulas_and_names_are_left_alone() {
        for text in ["5", "1e-3", "", "ms", "5*t", "5 bananas", "2 + m", "inf", "1e"] {
            assert_eq!(explain(text, |_| false), None, "{text}");
        }
        assert_eq!(explain("5 t", |name| name == "t"), None);
    }
}
