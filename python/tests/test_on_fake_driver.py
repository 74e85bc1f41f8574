"""Arrays on a GPU without one: the folder `on_fake_driver` has tests with a fake CUDA driver, which a process loads
instead of the machine's. So they run in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "on_fake_driver"


def run(arguments):
    driver = os.environ.get("WARPFOLD_FAKE_DRIVER")
    assert driver, "`cargo xtask python` sets WARPFOLD_FAKE_DRIVER to the path of the fake driver"
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(FOLDER.parent)])
    environment = os.environ | {"WARPFOLD_LIBCUDA": driver, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, cwd=FOLDER)


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("test_*.py")))
def test_file(file):
    result = run(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", file])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "skipped" not in result.stdout


def test_arrays_in_host_memory_need_no_driver_call():
    script = """
import numpy as np, warpfold as wf
x = np.arange(12.0).reshape(3, 4)
wf.sum(x), wf.sum(x, axis=0), wf.min_max(x), wf.vecdot(x, x), wf.matrix_transpose(x), wf.ExactSum(x)
wf.segment_sum(x[0], np.array([0, 2, 4]))
import fake_driver
assert fake_driver.take_calls() == [], "a call of the driver"
"""
    result = run(["-c", script])
    assert result.returncode == 0, result.stdout + result.stderr


def test_results_that_live_until_python_ends():
    script = """
import fake_driver, warpfold as wf
from dlpack_structures import Versioned
from fake_arrays import InterfaceArray, Memory
fake_driver.use_device(0)
class AtTheEnd:
    # The deletion of the last objects, as by a library that is unloaded late.
    def __init__(self, *kept):
        self.kept = kept
    def __del__(self):
        self.kept = None
y = wf.sum(InterfaceArray(Memory((6, 5))), axis=0)
keep = y.__dlpack__(), y.__dlpack__(max_version=(1, 1)), AtTheEnd(y, wf.sum(y).__dlpack__())
keep[2].cycle = keep
"""
    result = run(["-c", script])
    assert result.returncode == 0 and not result.stderr, result.stdout + result.stderr


def test_a_gpu_after_a_fork_is_an_error():
    script = """
import os
import fake_driver, numpy as np, pytest, warpfold as wf
from fake_arrays import Memory, TableArray
fake_driver.use_device(0)
x = TableArray(Memory((10,)))
wf.sum(x)
child = os.fork()
if child == 0:
    is_right = wf.sum(np.ones(3)) == 3
    try:
        wf.sum(x)
    except RuntimeError as error:
        os._exit(0 if is_right and "fork" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
wf.sum(x)
"""
    result = run(["-c", script])
    assert result.returncode == 0, result.stdout + result.stderr
