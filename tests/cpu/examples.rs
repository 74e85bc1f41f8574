//! The examples as a user runs them, in the executor.

use std::process::{Command, Output};
use std::{env, fs, path::Path};

use rust_cuda_kernels::{gemm_naive, gemm_tiled};
use warpfold::Gpu;

/// Builds an example and starts it on a machine without a GPU.
fn start(example: &str) -> Output {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // The whole workspace, because cargo would otherwise build the tests' dependencies again, with fewer features.
    let built = Command::new(cargo)
        .current_dir(workspace)
        .args(["build", "--quiet", "--workspace", "--bin", example])
        .status()
        .expect("cargo starts");
    assert!(built.success(), "{example} does not build");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../debug").join(example);
    Command::new(program).env("WARPFOLD_LIBCUDA", "none").output().expect("it has been built")
}

/// What an example prints in the executor.
fn run(example: &str) -> String {
    let output = start(example);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("SIMT executor"), "{text}");
    text
}

#[test]
fn vecadd_adds_with_its_own_kernel_crate() {
    let text = run("vecadd");
    assert!(text.contains("100000 sums are right, twice"), "{text}");
}

#[test]
fn operator_reduces_with_a_custom_operator() {
    let text = run("operator");
    assert!(text.contains("the peaks are right: 7.5 of all"), "{text}");
    for count in ["above -8 is right: 999999", "above 0.5 is right: 333", "above 1 is right: 0"] {
        assert!(text.contains(count), "{text}");
    }
    assert!(text.contains("the exact sum of magnitudes is right"), "{text}");
}

/// These programs need a device, where `run.sh` of a bundle runs them.
#[test]
fn programs_of_rust_cuda_are_built_and_need_a_driver() {
    for example in ["rust_cuda_guide", "rust_cuda_vecadd", "rust_cuda_async_api", "rust_cuda_gemm"] {
        let output = start(example);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("found no CUDA driver"), "{example}: {errors}");
    }
}

/// The kernels with and without tiles, in the executor with its checks.
#[test]
fn matrices_are_multiplied() {
    let gpu = Gpu::simt();
    let (m, n, k) = (20, 35, 18);
    let values = |count: usize, seed: usize| (0..count).map(move |i| ((i * seed) % 7) as f32 - 3.0).collect::<Vec<_>>();
    let (a, b, c) = (values(m * k, 5), values(k * n, 3), values(m * n, 11));
    let expected: Vec<f32> =
        (0..m * n).map(|i| 2.0 * (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum::<f32>() - c[i]).collect();
    let (a, b) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
    let (alpha, beta) = (2.0, -1.0);

    let mut product = gpu.upload(&c).unwrap();
    // SAFETY: the matrices have the sizes that the arguments state.
    let kernel = unsafe { gemm_naive::handle() }.with_block((16, 16));
    let arguments = gemm_naive::Args { a: a.view(), b: b.view(), c: product.view_mut(), m, n, k, alpha, beta };
    gpu.launch(kernel, (2, 3), arguments).unwrap();
    assert_eq!(gpu.download(&product).unwrap(), expected);

    let mut product = gpu.upload(&c).unwrap();
    // SAFETY: as above.
    let kernel = unsafe { gemm_tiled::handle() }.with_block((16, 16));
    let arguments = gemm_tiled::Args { a: a.view(), b: b.view(), c: product.view_mut(), m, n, k, alpha, beta };
    gpu.launch(kernel, (3, 2), arguments).unwrap();
    assert_eq!(gpu.download(&product).unwrap(), expected);
}

/// The commands of `docs/examples.md` up to the build, which would take minutes.
#[test]
fn copied_examples_stand_alone() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let text = fs::read_to_string(workspace.join("docs/examples.md")).unwrap();
    let commands = text.split("```").nth(1).unwrap().strip_prefix("sh\n").unwrap();
    let commands = commands.trim_end().strip_suffix("cargo run").expect("the last command builds and runs it");
    for example in ["vecadd", "operator"] {
        let home = tempfile::tempdir().unwrap();
        // The dependencies of this platform have been downloaded; those of others may not have been.
        let script = commands.replace("vecadd", example)
            + "cp $warpfold/Cargo.lock . && platform=$(rustc -vV | sed -n 's/host: //p') && "
            + "cargo metadata --offline --format-version 1 --filter-platform $platform";
        // rustup and cargo keep their files in the real home folder.
        let script = script.replace('~', "$HOME_OF_TEST");
        let mut shell = Command::new("sh");
        shell.current_dir(&workspace).args(["-e", "-c", &script]).env("HOME_OF_TEST", home.path());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
        let metadata = String::from_utf8_lossy(&output.stdout);
        let built_here = format!("{}/{example}/kernels/Cargo.toml", home.path().canonicalize().unwrap().display());
        assert!(metadata.contains(&built_here), "{metadata}");
        assert!(metadata.contains(&format!("{}/host/Cargo.toml", workspace.display())), "{metadata}");
    }
}
