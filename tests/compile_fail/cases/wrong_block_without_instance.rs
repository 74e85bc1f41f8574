fn main() {
    kernels::reduce::ladder::shared::sequential::handle::<f32, 100>();
}
