fn main() {
    kernels::reduce::ladder::sequential::handle::<f32, 100>();
}
