//! A struct with padding, whose bytes are undefined.
#[derive(Clone, Copy, cuda_std::Plain)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u32,
}

fn main() {}
