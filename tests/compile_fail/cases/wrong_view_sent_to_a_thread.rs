use cuda_std::prelude::*;

/// The bound that starting a thread or sending through a channel requires.
fn send<T: Send>(_: T) {}

/// Sends its view to another thread.
#[kernel]
pub fn hand_on(x: GlobalMut<u32>) {
    send(x);
}

fn main() {}
