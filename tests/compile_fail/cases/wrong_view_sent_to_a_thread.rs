use cuda_std::prelude::*;

/// As what starts a thread asks for it, or sends through a channel.
fn send<T: Send>(_: T) {}

/// Has another thread use its view.
#[kernel]
pub fn hand_on(x: GlobalMut<u32>) {
    send(x);
}

fn main() {}
