fn main() {
    // The kernel takes a bare pointer: whoever launches it has to vouch for the pointer.
    test_kernels::raw_parameters::handle();
}
