//! Structs that cannot be plain: of any layout, generic, with a field that has invalid bits; and an enum.
use cuda_std::Plain;

#[derive(Clone, Copy, Plain)]
struct OfAnyLayout {
    number: u32,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Generic<T> {
    number: T,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct WithBool {
    is_valid: bool,
}

#[derive(Clone, Copy, Plain)]
#[repr(u8)]
enum Color {
    Red,
}

fn main() {}
