use cuda_std::launch::Instance;
use cuda_std::prelude::*;

/// For elements of 8 bytes.
#[kernel(instances = [u64])]
pub fn fill<T: Element>(x: GlobalMut<T>) {
    x.store(0, T::default());
}

/// And for those of 1 byte, by the kernel for those of 8.
impl Instance for fill::Instance<u8> {
    const ENTRY: &'static str = <fill::Instance<u64> as Instance>::ENTRY;
    const BLOCK: [u32; 3] = <fill::Instance<u64> as Instance>::BLOCK;
    const PARAMETERS: &'static [cuda_std::launch::NamedParameter] = <fill::Instance<u64> as Instance>::PARAMETERS;
    const THREAD: unsafe fn(&[u64]) = <fill::Instance<u64> as Instance>::THREAD;
}

fn main() {}
