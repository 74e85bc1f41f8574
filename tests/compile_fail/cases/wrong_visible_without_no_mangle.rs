//! An externally visible function with a mangled name.
#[cuda_std::externally_visible]
pub extern "C" fn rotate(x: u32) -> u32 {
    x.rotate_left(1)
}

fn main() {}
