use super::expression::{MAXIMUM_DEPTH, MAXIMUM_LENGTH};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn scope() -> Scope {
    let table = Table::new(vec![0.0, 1.0, 3.0], vec![0.0, 2.0, 2.0], Interpolation::Cubic);
    Scope {
        constants: BTreeMap::from([("amplitude".to_string(), 0.25), ("mu".to_string(), 0.7)]),
        tables: BTreeMap::from([("lift".to_string(), Arc::new(table.expect("a right table")))]),
    }
}

fn value(text: &str) -> f64 {
    let expression =
        Expression::compile(text, &["t", "x"], &scope()).unwrap_or_else(|error| panic!("{text}: {error}"));
    expression.evaluate(&[2.0, 3.0])
}

#[test]
fn arithmetic_follows_the_conventions_of_mathematics() {
    for (text, expected) in [
        ("1e4", 1e4),
        ("2.5E-3", 2.5e-3),
        (".5", 0.5),
        ("5.", 5.0),
        ("-2^2", -4.0),
        ("2^3^2", 512.0),
        ("2**-1", 0.5),
        ("2 - 3 - 4", -5.0),
        ("12/3/2", 2.0),
        ("1 + 2*3", 7.0),
        ("(1 + 2)*3", 9.0),
        ("--3", 3.0),
        ("2*-3", -6.0),
        ("t*x", 6.0),
        ("amplitude*4 + pi - pi", 1.0),
        ("min(3, 1, 2)", 1.0),
        ("max(t, x)", 3.0),
        ("clamp(7, 0, 5) + clamp(-1, 0, 5)", 5.0),
        ("if(t < 2, 1, if(t <= 2, 10, 100))", 10.0),
        ("(t > 1) + (x >= 3) + (t == 2) + (t != 2)", 3.0),
        ("not (t < 1 or x < 1) and 1", 1.0),
        ("!0 && 1 || 0", 1.0),
        ("step(-1) + step(0) + smoothstep(0.5)", 1.5),
        ("mod(7.5, 2)", 1.5),
        ("mod(-0.5, 2)", 1.5),
        ("degrees(atan2(1, 1))", 45.0),
        ("hypot(3, 4)", 5.0),
        ("sqrt(abs(-16))", 4.0),
        ("lift(1) + lift(99)", 4.0),
        ("sign(-3) + sign(0)", -1.0),
        ("round(2.5) + floor(-0.5) + ceil(0.5)", 3.0),
    ] {
        assert!((value(text) - expected).abs() < 1e-12, "{text} = {}, expected {expected}", value(text));
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, at, message) in [
        ("", 0, "found an empty expression"),
        ("   ", 0, "found an empty expression"),
        ("1 +", 3, "found the end, expected a number, a name or `(`"),
        ("1 2", 2, "found the number 2, expected an operator"),
        ("(1", 2, "found the end, expected an operator or `)`"),
        ("1)", 1, "found `)`, expected an operator or the end"),
        ("2 $ 3", 2, "found the character '$'"),
        (
            "2*amplitud",
            2,
            "found the unknown name `amplitud`, expected one of t, x, amplitude, mu, pi; did you mean `amplitude`?",
        ),
        ("sine(t)", 0, "found the unknown function `sine`"),
        ("sine(t)", 0, "did you mean `sin`?"),
        ("sin", 0, "found the function `sin` without arguments, expected `sin(…)`"),
        ("sin()", 0, "found 0 argument(s) of `sin`, expected 1"),
        ("sin(1, 2)", 0, "found 2 argument(s) of `sin`, expected 1"),
        ("clamp(1, 2)", 0, "found 2 argument(s) of `clamp`, expected 3"),
        ("min(1)", 0, "found 1 argument(s) of `min`, expected 2 or more"),
        ("lift", 0, "found the function `lift` without arguments"),
        ("min(1, 2", 8, "found the end, expected `,` or `)`"),
        (".", 0, "found `.`, expected a number"),
        ("1..2", 2, "found the number 0.2, expected an operator"),
    ] {
        let error = Expression::compile(text, &["t", "x"], &scope()).expect_err(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
}

#[test]
fn depth_and_length_are_limited() {
    for text in
        ["(".repeat(3000), "-".repeat(3000), "sin(".repeat(1000), "2^".repeat(2000), "not ".repeat(1000)]
    {
        let error = Expression::compile(&(text + "1"), &[], &Scope::default()).expect_err("too deep");
        assert_eq!(error.problem, ExpressionProblem::TooDeep);
    }
    let long = "1+".repeat(MAXIMUM_LENGTH) + "1";
    let error = Expression::compile(&long, &[], &Scope::default()).expect_err("too long");
    assert_eq!(error.problem, ExpressionProblem::TooLong(long.len()));
    let nested = "(".repeat(MAXIMUM_DEPTH) + "1" + &")".repeat(MAXIMUM_DEPTH);
    assert!(Expression::compile(&nested, &[], &Scope::default()).is_ok());
    // A flat sum needs a deep stack only if it were right-associative.
    let sum = "1+".repeat(2000) + "1";
    let expression = Expression::compile(&sum, &[], &Scope::default()).expect("a sum");
    assert_eq!(expression.as_constant(), Some(2001.0));
}

#[test]
fn constants_are_folded_and_variables_found() {
    let expression = |text| Expression::compile(text, &["t", "x"], &scope()).expect("right");
    assert_eq!(expression("2*amplitude + sin(0)").as_constant(), Some(0.5));
    assert_eq!(expression("2*t").as_constant(), None);
    assert!(expression("2*t").depends_on(0) && !expression("2*t").depends_on(1));
    assert_eq!(Expression::constant(3.5).evaluate(&[]), 3.5);
    assert!(expression("t").evaluate(&[]).is_nan());
}

#[test]
fn derivatives_agree_with_differences() {
    for text in [
        "0.1*sin(2*pi*5*t)",
        "t^3 - x*t + 2^t + t^x + t^t + (t^2)^sin(t)",
        "(t - 1.7)^2 + (t - 1.7)^1 + (t - 1.7)^0 + x^2",
        "hypot(sin(t), t^2) + atan2(t^2, cos(t)) + sin(t)/exp(t^2) + mod(t^2, t)",
        "exp(-t)*cos(x*t)/(1 + t^2)",
        "tan(t/4) + atan(t) + asin(t/4) + acos(t/4)",
        "sinh(t) + cosh(t) + tanh(t) + ln(t) + log10(t) + sqrt(t)",
        "abs(t - 5) + min(t, 3) + max(t, 3) + clamp(t, 0, 1)",
        "if(t < 5, t^2, 0) + hypot(t, x) + atan2(t, x) + mod(t, 0.7)",
        "smoothstep(t/4) + radians(t) + degrees(t) + lift(t - 1.5) + step(t)*t",
        "-(t - 1)*(not 0)",
    ] {
        let expression = Expression::compile(text, &["t", "x"], &scope()).expect(text);
        let (t, h) = (1.7, 1e-6);
        let at = |t: f64| expression.evaluate_with_derivatives(&[t, 3.0], 0);
        let [value, first, second] = at(t);
        assert_eq!(value, expression.evaluate(&[t, 3.0]), "{text}");
        for (derivative, k) in [(first, 0), (second, 1)] {
            let difference = (at(t + h)[k] - at(t - h)[k]) / (2.0 * h);
            let error = (derivative - difference).abs() / derivative.abs().max(1.0);
            assert!(error < 1e-7, "{text}, derivative {}: {derivative} {difference}", k + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any text of the alphabet of formulas is compiled or refused, and what is compiled can be evaluated.
    #[test]
    fn no_text_panics(text in "[0-9.eE+*/^()<>=!&|, txpiµ-]{0,40}|([a-z]{1,5}|[(),]|[0-9.]{1,3}|[-+*/^]){0,30}") {
        match Expression::compile(&text, &["t", "x"], &scope()) {
            Ok(expression) => {
                let value = expression.evaluate(&[0.5, 2.0]);
                let (again, _) = expression.evaluate_with_derivative(&[0.5, 2.0], 0);
                prop_assert!(value == again || (value.is_nan() && again.is_nan()), "{value} {again}");
            }
            Err(error) => prop_assert!(error.at <= text.len()),
        }
    }
}

#[test]
fn a_compact_formula_asks_only_for_what_it_reads() {
    let names = ["t", "x", "v", "slider.position", "slider.velocity", "unused"];
    let full = Expression::compile("slider.velocity*t - 2*slider.velocity + v", &names, &Scope::default());
    let full = full.expect("right");
    let compact = full.compact();
    assert_eq!(compact.variables(), ["t", "v", "slider.velocity"]);
    assert_eq!(compact.evaluate(&[3.0, 10.0, 5.0]), full.evaluate(&[3.0, 9.0, 10.0, 9.0, 5.0, 9.0]));
    assert_eq!(compact.evaluate(&[3.0, 10.0, 5.0]), 15.0);
    assert_eq!(Expression::constant(2.0).compact().variables(), Vec::<String>::new());
}
