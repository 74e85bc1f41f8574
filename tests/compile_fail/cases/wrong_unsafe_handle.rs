fn main() {
    // The kernel takes a raw pointer, so the launching code must vouch for it.
    test_kernels::raw_parameters::handle();
}
