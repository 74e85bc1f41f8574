//! What the typed launch refuses to compile.

#[test]
fn launches_that_do_not_compile() {
    // What compiles depends on no architecture, and one is built sooner than three.
    // SAFETY: nothing else in this program reads or writes the environment: it has this test alone.
    unsafe { std::env::set_var("WARPFOLD_ARCHS", "sm_75") };
    let cases = trybuild::TestCases::new();
    cases.pass("compile_fail/right.rs");
    cases.compile_fail("compile_fail/wrong_*.rs");
}
