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
