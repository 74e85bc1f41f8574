//! Launches that must not compile, and one that must.

#[path = "cases/right.rs"]
mod right;

#[test]
fn launches_that_do_not_compile() {
    right::main().expect("the correct launch succeeds");

    // PTX does not affect type checks, and trybuild has its own target folder, where everything is built anew.
    // SAFETY: this program has only this test, so no other thread reads or writes the environment.
    unsafe { std::env::set_var("WARPFOLD_ARCHS", "none") };
    // Without cases that compile, trybuild only runs checks, which take half the time.
    trybuild::TestCases::new().compile_fail("cases/wrong_*.rs");
}
