//! Tests of small sources and their rewritten versions.

use super::draw::{self, Source};
use super::finder;
use super::places::LeftOut;
use super::rewrite::rewrite;

/// The source with all its places' first changes.
fn all(text: &str) -> String {
    let found = finder::find(text).unwrap();
    let places = found.places.into_iter().map(|mut place| {
        place.changes.truncate(1);
        place
    });
    let source = Source { path: "a.rs".into(), text: text.into(), places: places.collect() };
    let mut mutants = draw::draw(&[source], 1, 100);
    mutants.sort_by_key(|mutant| (mutant.place.range.start, usize::MAX - mutant.place.range.end));
    for (number, mutant) in (1..).zip(&mut mutants) {
        mutant.number = number;
    }
    rewrite(text, &mutants.iter().collect::<Vec<_>>()).text.replace("::mutant_switch::", "")
}

fn body(text: &str) -> String {
    all(&format!("fn f() {{ {text} }}")).strip_prefix("fn f() { ").unwrap().strip_suffix(" }").unwrap().to_owned()
}

#[test]
fn an_operator_becomes_another_one() {
    assert_eq!(body("a - b"), "(if is(1) { (a) + (b) } else { a - b })");
    assert_eq!(body("a += b;"), "(if is(1) { a -= (b) } else { a += b });");
    assert_eq!(body("a < b"), "(if is(1) { (a) <= (b) } else { a < b })");
    assert_eq!(body("-a"), "(if is(1) { a } else { -a })");
}

#[test]
fn a_place_in_a_place_is_in_what_stays() {
    assert_eq!(body("a - b * c"), "(if is(1) { (a) + (b * c) } else { a - (if is(2) { (b) + (c) } else { b * c }) })");
}

#[test]
fn constants_and_conditions() {
    assert_eq!(body("g(0x10_u32)"), "g((if is(1) { 17u32 } else { 0x10_u32 }))");
    assert_eq!(body("g(1.5)"), "g((if is(1) { 2.5 } else { 1.5 }))");
    assert_eq!(body("if g(a) {}"), "if (if is(1) { ! (g (a)) } else { g(a) }) {}");
}

#[test]
fn barriers_and_calls_are_left_out() {
    assert_eq!(body("thread::sync_threads();"), "if !is(1) { thread::sync_threads(); }");
    assert_eq!(body("let a = g();"), "let a = g();");
}

#[test]
fn hints_stay() {
    assert_eq!(body("global::issue_loads();"), "global::issue_loads();");
    assert_eq!(finder::find("fn f() { issue_loads(); }").unwrap().left_out[&LeftOut::Hints], 1);
}

#[test]
fn bounds() {
    assert_eq!(body("a.div_ceil(b)"), "(if is(1) { (a) / (b) } else { a.div_ceil(b) })");
    assert_eq!(body("a.min(b)"), "(if is(1) { a . max (b) } else { a.min(b) })");
    assert_eq!(body("g(a..b)"), "g(a..(if is(1) { (b) + 1 } else { b }))");
}

#[test]
fn lines_stay_where_they_are() {
    let text = "fn f() {\n    a + // first\n        b\n}\n";
    assert_eq!(all(text), "fn f() {\n    (if is(1) { (a) - (b) } else { a + // first\n        b })\n}\n");
}

#[test]
fn what_the_compiler_runs_is_left_out() {
    let text = "const A: usize = 1 + 2;\nfn f(x: [u8; 3]) -> u8 { match x[a] { 4 => g::<5>([b; 6]), _ => c } }\n";
    let found = finder::find(text).unwrap();
    assert!(found.places.is_empty(), "{:?}", found.places);
    assert_eq!(found.left_out[&LeftOut::Constants], 6);
    assert_eq!(found.left_out[&LeftOut::Patterns], 1);
    assert!(finder::find("const fn f() { a + b }").unwrap().places[0].in_const_fn);
}

#[test]
fn tests_and_device_code_have_no_places() {
    let text = "#[cfg(test)] mod tests { fn f() { a + b } }\n#[cfg(target_arch = \"nvptx64\")] mod gpu;\n\
                #[cfg(target_arch = \"nvptx64\")] fn f() { a + b }\n";
    let found = finder::find(text).unwrap();
    assert!(found.places.is_empty());
    assert_eq!(found.tests.len(), 1);
    assert_eq!(found.device_modules, ["gpu"]);
    assert_eq!(found.left_out[&LeftOut::DeviceOnly], 1);
}

#[test]
fn macros_that_write_rust_have_places() {
    let text = "macro_rules! m { ($($t:ident),*) => {$( impl A for $t { fn f(self) -> $t { $t + 1 } } )*}; }\n\
                assert!(a < b);\n";
    let rewritten = all(&text.replace("assert!(a < b);", "fn g() { assert!(a < b); }"));
    assert!(
        rewritten.contains("{ (if is(1) { ($ t) - (1) } else { $t + (if is(2) { 2 } else { 1 }) }) }"),
        "{rewritten}"
    );
    assert!(rewritten.contains("assert!((if is(3) { (a) <= (b) } else { a < b }));"), "{rewritten}");
}

#[test]
fn a_draw_does_not_depend_on_what_is_beside() {
    let source =
        |text: &str| Source { path: "a.rs".into(), text: text.into(), places: finder::find(text).unwrap().places };
    let keys = |text: &str| draw::draw(&[source(text)], 7, 100).iter().map(draw::Mutant::key).collect::<Vec<_>>();
    let (few, more) = (keys("fn f() { a + b; c * d }"), keys("fn g() { e - h }\nfn f() { a + b; c * d }"));
    assert!(!few.is_empty());
    let kept: Vec<_> = more.into_iter().filter(|key| !key.contains("e - h ")).collect();
    assert_eq!(kept.len(), few.len());
}
