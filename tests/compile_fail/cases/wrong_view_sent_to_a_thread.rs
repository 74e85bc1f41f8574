use cuda_std::prelude::*;

/// Has another thread use its view.
#[kernel]
pub fn send(x: GlobalMut<u32>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let x: GlobalMut<u32> = receiver.recv().unwrap();
        x.store(0, 1);
    });
    sender.send(x).unwrap();
}

fn main() {}
