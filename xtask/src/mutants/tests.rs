//! The mutation sites of small sources, and the rewritten sources.

use super::finder;
use super::rewrite::rewrite;
use super::sample::{self, Source};
use super::sites::Exclusion;

/// The source with the first mutation of each of its sites, and `is` for `::mutant_switch::is_active`.
fn rewritten(text: &str) -> String {
    let found = finder::find(text).unwrap();
    let sites = found.sites.into_iter().map(|mut site| {
        site.mutations.truncate(1);
        site
    });
    let source = Source { path: "a.rs".into(), text: text.into(), sites: sites.collect() };
    let mut mutants = sample::sample(&[source], 1, 100);
    mutants.sort_by_key(|mutant| (mutant.site.range.start, usize::MAX - mutant.site.range.end));
    for (number, mutant) in (1..).zip(&mut mutants) {
        mutant.number = number;
    }
    rewrite(text, &mutants.iter().collect::<Vec<_>>()).text.replace("::mutant_switch::is_active", "is")
}

/// The same for the statements of a function.
fn rewritten_body(text: &str) -> String {
    rewritten(&format!("fn f() {{ {text} }}")).strip_prefix("fn f() { ").unwrap().strip_suffix(" }").unwrap().to_owned()
}

#[test]
fn operators_are_replaced() {
    assert_eq!(rewritten_body("a - b"), "(if is(1) { (a) + (b) } else { a - b })");
    assert_eq!(rewritten_body("a += b;"), "(if is(1) { a -= (b) } else { a += b });");
    assert_eq!(rewritten_body("a < b"), "(if is(1) { (a) <= (b) } else { a < b })");
    assert_eq!(rewritten_body("-a"), "(if is(1) { a } else { -a })");
}

#[test]
fn a_nested_site_is_in_the_original_branch() {
    assert_eq!(
        rewritten_body("a - b * c"),
        "(if is(1) { (a) + (b * c) } else { a - (if is(2) { (b) + (c) } else { b * c }) })"
    );
}

#[test]
fn literals_and_conditions_are_replaced() {
    assert_eq!(rewritten_body("g(0x10_u32)"), "g((if is(1) { 17u32 } else { 0x10_u32 }))");
    assert_eq!(rewritten_body("g(1.5)"), "g((if is(1) { 2.5 } else { 1.5 }))");
    assert_eq!(rewritten_body("if g(a) {}"), "if (if is(1) { ! (g (a)) } else { g(a) }) {}");
}

#[test]
fn barriers_and_calls_of_unused_values_are_removed() {
    assert_eq!(rewritten_body("thread::sync_threads();"), "if !is(1) { thread::sync_threads(); }");
    assert_eq!(rewritten_body("let a = g();"), "let a = g();");
}

#[test]
fn scheduling_hints_are_excluded() {
    assert_eq!(rewritten_body("global::issue_loads();"), "global::issue_loads();");
    assert_eq!(finder::find("fn f() { issue_loads(); }").unwrap().excluded[&Exclusion::Hints], 1);
}

#[test]
fn bounds_are_replaced() {
    assert_eq!(rewritten_body("a.div_ceil(b)"), "(if is(1) { (a) / (b) } else { a.div_ceil(b) })");
    assert_eq!(rewritten_body("a.min(b)"), "(if is(1) { a . max (b) } else { a.min(b) })");
    assert_eq!(rewritten_body("g(a..b)"), "g(a..(if is(1) { (b) + 1 } else { b }))");
}

#[test]
fn rewriting_keeps_line_numbers() {
    let text = "fn f() {\n    a + // first\n        b\n}\n";
    assert_eq!(rewritten(text), "fn f() {\n    (if is(1) { (a) - (b) } else { a + // first\n        b })\n}\n");
}

#[test]
fn constants_and_patterns_are_excluded() {
    let text = "const A: usize = 1 + 2;\nfn f(x: [u8; 3]) -> u8 { match x[a] { 4 => g::<5>([b; 6]), _ => c } }\n";
    let found = finder::find(text).unwrap();
    assert!(found.sites.is_empty(), "{:?}", found.sites);
    assert_eq!(found.excluded[&Exclusion::Constants], 6);
    assert_eq!(found.excluded[&Exclusion::Patterns], 1);
    assert!(finder::find("const fn f() { a + b }").unwrap().sites[0].in_const_fn);
}

#[test]
fn unit_tests_and_device_code_are_excluded() {
    let text = "#[cfg(test)] mod tests { fn f() { a + b } }\n#[cfg(target_arch = \"nvptx64\")] mod gpu;\n\
                #[cfg(target_arch = \"nvptx64\")] fn f() { a + b }\n";
    let found = finder::find(text).unwrap();
    assert!(found.sites.is_empty());
    assert_eq!(found.tests.len(), 1);
    assert_eq!(found.device_modules, ["gpu"]);
    assert_eq!(found.excluded[&Exclusion::DeviceOnly], 1);
}

#[test]
fn macros_that_expand_to_rust_have_sites() {
    let text = "macro_rules! m { ($($t:ident),*) => {$( impl A for $t { fn f(self) -> $t { $t + 1 } } )*}; }\n\
                assert!(a < b);\n";
    let text = rewritten(&text.replace("assert!(a < b);", "fn g() { assert!(a < b); }"));
    assert!(text.contains("{ (if is(1) { ($ t) - (1) } else { $t + (if is(2) { 2 } else { 1 }) }) }"), "{text}");
    assert!(text.contains("assert!((if is(3) { (a) <= (b) } else { a < b }));"), "{text}");
}

#[test]
fn a_sample_does_not_depend_on_other_sites() {
    let source =
        |text: &str| Source { path: "a.rs".into(), text: text.into(), sites: finder::find(text).unwrap().sites };
    let keys = |text: &str| sample::sample(&[source(text)], 7, 100).iter().map(sample::Mutant::key).collect::<Vec<_>>();
    let (alone, together) = (keys("fn f() { a + b; c * d }"), keys("fn g() { e - h }\nfn f() { a + b; c * d }"));
    assert!(!alone.is_empty());
    let same: Vec<_> = together.into_iter().filter(|key| !key.contains("e - h ")).collect();
    assert_eq!(same, alone);
}
