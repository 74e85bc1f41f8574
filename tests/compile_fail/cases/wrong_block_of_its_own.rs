fn main() {
    // The block is in the kernel's type: there is no other to be given.
    kernels::ladder::reduce_shared::sequential::handle::<f32, 256>().with_block(128);
}
