//! The examples as a user runs them, in the executor.

use std::process::Command;
use std::{env, fs, path::Path};

/// The output of an example in the executor.
fn run(example: &str) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // The whole workspace, so that cargo does not build the tests' dependencies again with fewer features.
    let built = Command::new(cargo)
        .current_dir(workspace)
        .args(["build", "--quiet", "--workspace", "--bin", example])
        .status()
        .expect("cargo starts");
    assert!(built.success(), "{example} does not build");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../debug").join(example);
    let output = Command::new(program).env("WARPFOLD_LIBCUDA", "none").output().expect("it has been built");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("SIMT executor"), "{text}");
    text
}

#[test]
fn vecadd_adds_by_a_kernel_crate_of_its_own() {
    let text = run("vecadd");
    assert!(text.contains("100000 sums are right, twice"), "{text}");
}

#[test]
fn operator_reduces_by_an_operator_of_its_own() {
    let text = run("operator");
    assert!(text.contains("the peaks are right: 7.5 of all"), "{text}");
    assert!(text.contains("the exact sum of magnitudes is right"), "{text}");
}

/// The commands of `docs/examples.md` up to the build, which would take minutes.
#[test]
fn examples_stand_alone_when_they_are_copied() {
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
