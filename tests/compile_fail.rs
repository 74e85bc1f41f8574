//! What the typed launch refuses to compile.

#[test]
fn launches_that_do_not_compile() {
    // What compiles depends on no architecture, and one is built sooner than three; soonest where this test's own build has left
    // it, since trybuild has a target folder of its own.
    let built = concat!(env!("CARGO_TARGET_TMPDIR"), "/../cuda-builder");
    // SAFETY: nothing else in this program reads or writes the environment: it has this test alone.
    unsafe {
        std::env::set_var("WARPFOLD_ARCHS", "sm_75");
        std::env::set_var("CUDA_BUILDER_DIR", built);
    }
    let cases = trybuild::TestCases::new();
    cases.pass("compile_fail/right.rs");
    cases.compile_fail("compile_fail/wrong_*.rs");
}
