fn main() {
    // The block is in the kernel's type, so it cannot be chosen.
    kernels::ladder::reduce_shared::sequential::handle::<f32, 256>().with_block(128);
}
