fn main() {
    kernels::ladder::reduce_shared::sequential::handle::<f32, 100>();
}
