//! What the typed launch refuses to compile, beside one that it takes.

#[path = "cases/right.rs"]
mod right;

#[test]
fn launches_that_do_not_compile() {
    right::main().expect("the launch that the others get wrong is right");

    // What compiles depends on no PTX, and trybuild has a target folder of its own, in which nothing is built yet.
    // SAFETY: nothing else in this program reads or writes the environment: it has this test alone.
    unsafe { std::env::set_var("WARPFOLD_ARCHS", "none") };
    // None that compiles is among them, so that trybuild has them checked only, which takes half the time.
    trybuild::TestCases::new().compile_fail("cases/wrong_*.rs");
}
