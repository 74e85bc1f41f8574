//! Compiles the fake driver, the folder `driver`, to a library that tests load.

use std::env::{self, consts};
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=driver");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    let library = Path::new(&folder).join(format!("{}fake_driver{}", consts::DLL_PREFIX, consts::DLL_SUFFIX));
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo sets it"));
    rustc.args(["--edition=2024", "--crate-type=cdylib", "--crate-name=fake_driver", "-Cpanic=abort"]);
    let status = rustc.arg("-o").arg(&library).arg("driver/main.rs").status().expect("rustc runs");
    assert!(status.success(), "the fake driver does not compile");
    println!("cargo::rustc-env=FAKE_DRIVER={}", library.display());
}
