//! A static in a memory that has no statics, and one in an unknown memory.
use cuda_std::address_space;

#[address_space(local)]
static A: u32 = 1;

#[address_space(texture)]
static B: u32 = 2;

fn main() {}
