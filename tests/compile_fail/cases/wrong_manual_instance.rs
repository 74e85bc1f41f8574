use cuda_std::launch::Instance;
use cuda_std::prelude::*;

/// For 8-byte elements.
#[kernel(instances = [u64])]
pub fn fill<T: Element>(x: GlobalMut<T>) {
    x.store(0, T::default());
}

/// An instance for 1-byte elements that runs the kernel for 8-byte elements.
impl Instance for fill::Instance<u8> {
    const ENTRY: &'static str = <fill::Instance<u64> as Instance>::ENTRY;
    const BLOCK: [u32; 3] = <fill::Instance<u64> as Instance>::BLOCK;
    const PARAMETERS: &'static [cuda_std::launch::NamedParameter] = <fill::Instance<u64> as Instance>::PARAMETERS;
    const THREAD: unsafe fn(&[u64]) = <fill::Instance<u64> as Instance>::THREAD;
}

fn main() {}
