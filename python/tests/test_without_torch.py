"""The package without PyTorch, and before it is asked for."""

import subprocess
import sys


def printed(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_the_package_does_not_import_pytorch():
    assert printed("import sys, warpfold; print('torch' in sys.modules)") == "False\n"


def test_the_module_for_pytorch_says_what_is_missing():
    script = """
import sys
sys.modules["torch"] = None
import warpfold
try:
    import warpfold.torch
except ImportError as error:
    print(error)
"""
    assert printed(script) == "warpfold.torch needs PyTorch: install the package torch\n"


def test_the_benchmark_of_ranks_helps_and_refuses():
    """It runs on a GPU machine alone: see `ranks` in xtask/run.sh."""

    def run(*arguments):
        command = [sys.executable, "-m", "warpfold.bench_ranks", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    helped = run("--help")
    assert helped.returncode == 0 and "torchrun --standalone --nproc-per-node 2" in helped.stdout
    for arguments, message in (
        ([], "start it with torchrun"),
        (["--mebibytes", "1.5"], "--mebibytes takes whole numbers"),
        (["--runs", "0"], "are at least 1"),
        (["--elements", "many"], "no number such as 1000 or 2^30"),
    ):
        refused = run(*arguments)
        assert refused.returncode == 2 and message in refused.stderr, refused.stderr
