//! A static in a place where none can be, and one in no place.
use cuda_std::address_space;

#[address_space(local)]
static A: u32 = 1;

#[address_space(texture)]
static B: u32 = 2;

fn main() {}
