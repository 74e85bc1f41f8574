//! A view of memory of another library cannot be used after the borrow has ended.

use warpfold::{Gpu, interop};

fn main() {
    let gpu = Gpu::simt();
    let numbers = [1.0_f32; 4];
    let address = numbers.as_ptr().expose_provenance() as u64;
    let view = {
        // SAFETY: nobody writes the numbers.
        let array = unsafe { interop::borrow::<f32>(&gpu, address, &[4], &[1]) }.unwrap();
        array.view()
    };
    gpu.sum(view).unwrap();
}
