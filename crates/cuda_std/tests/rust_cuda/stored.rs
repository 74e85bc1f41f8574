//! Memory whose bits are no value of the type of the view.

use cuda_std::prelude::*;

#[kernel]
pub fn numbers_of_letters(letters: Global<char>, numbers: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    numbers.store(i, letters.load(i).into());
}

/// Runs the kernel on the bits of two letters.
fn numbers(mut bits: [u32; 2]) -> Result<[u32; 2], String> {
    let mut numbers = [0; 2];
    let slots = [crate::pointer(&mut bits), 2, crate::pointer(&mut numbers), 2];
    // SAFETY: both views have two elements.
    match unsafe { crate::launch(numbers_of_letters::handle().with_block(2), 1, &slots) } {
        Ok(()) => Ok(numbers),
        Err(fault) => Err(fault.to_string()),
    }
}

#[test]
fn a_load_of_no_value_ends_the_kernel() {
    assert_eq!(numbers([0x61, 0x0010_FFFF]), Ok([0x61, 0x0010_FFFF]));
    let fault = numbers([0x61, 0xD800]).unwrap_err();
    for part in ["thread (1, 0, 0)", "the loaded bits are no value of `char`"] {
        assert!(fault.contains(part), "{part} is not in: {fault}");
    }
}
