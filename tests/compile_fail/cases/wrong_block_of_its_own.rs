fn main() {
    // The block is in the kernel's type, so it cannot be chosen.
    kernels::reduce::ladder::shared::sequential::handle::<f32, 256>().with_block(128);
}
