//! Types that cannot be plain: structs without a fixed layout, generic, or with a field of invalid bits; an enum.
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
