//! What the typed launch refuses to compile.

#[test]
fn launches_that_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("compile_fail/right.rs");
    cases.compile_fail("compile_fail/wrong_*.rs");
}
