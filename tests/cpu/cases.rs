//! The reductions of `tests/cases/cases.txt` in the executor, with its checks.

use test_support::cases::{CASES, check_cases, check_text};
use test_support::executor;
use warpfold::Gpu;

#[test]
fn reductions_have_the_bits_that_python_computed() {
    check_cases(&Gpu::simt()).unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// A single wrong bit, extent, index or error is found, and so are missing cases.
#[test]
fn a_wrong_case_is_reported() {
    let gpu = executor();
    let refused = |text: &str| check_text(&gpu, text).unwrap_err();
    for (line, reported) in [
        ("Sum f32 ties/7/6,1/1,6/0 all = - 40400001", "output 0 is 0x40400000, expected 0x40400001"),
        ("Sum f32 zeros/7/3 all = - 80000000", "output 0 is 0x0, expected 0x80000000"),
        ("Sum f32 zeros/7/3,2 -1 = 3 0*2", "output 2 is 0x0, expected nothing"),
        ("Sum f32 zeros/7/3,2 -1 = 3x1 0*3", "extents [3], expected [3, 1]"),
        ("Min i8 zeros/7/2,2 0k = 1x2 0 1", "1 outputs are wrong; output 1 is 0x0, expected 0x1"),
        ("Min i8 zeros/7/2,2 0k ! Axis", "a result, expected the error Axis"),
        ("Min i8 zeros/7/2,2 1,-1 ! Axis", "the error RepeatedAxis, expected Axis"),
        ("Min i8 zeros/7/0,2 0 = 2 0*2", "the error Empty, expected a result"),
        ("Min i8 zeroes/7/2 0 = 2 0*2", "`zeroes` is no kind of element of this type"),
        ("Minimum i8 zeros/7/2 0 = 2 0*2", "no such operator of this type"),
        ("Min i8 zeros/7/2 0", "no result"),
    ] {
        let message = refused(line);
        assert!(message.contains("line 1 of cases.txt") && message.contains(line), "{message}");
        assert!(message.contains(reported), "{message}");
    }
    let few: Vec<&str> = CASES.lines().take(3).collect();
    assert_eq!(refused(&few.join("\n")), "only 3 cases, expected 5000 or more");
    let none: Vec<&str> = CASES.lines().filter(|line| !line.starts_with("Norm bf16 ")).collect();
    assert_eq!(refused(&none.join("\n")), "no case of Norm of bf16");
}
