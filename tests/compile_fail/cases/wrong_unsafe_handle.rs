fn main() {
    // The kernel takes a raw pointer, so its handle is unsafe.
    test_kernels::raw_parameters::handle();
}
