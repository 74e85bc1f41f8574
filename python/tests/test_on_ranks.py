"""`warpfold.distributed` over several processes of MPI, more than there may be cores. See on_ranks/program.py."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parent / "on_ranks" / "program.py"


def run(command):
    environment = os.environ | {
        # OpenMPI refuses root, and more processes than cores, unless it is told.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "WARPFOLD_THREADS": "1",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_results_do_not_depend_on_the_number_of_ranks(ranks):
    pytest.importorskip("mpi4py")
    mpirun = shutil.which("mpirun", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("no mpirun")
    assert run([mpirun, "--oversubscribe", "-n", str(ranks), sys.executable, str(PROGRAM), "mpi"]) == "right\n"


def test_a_world_of_one_rank():
    pytest.importorskip("mpi4py")
    assert run([sys.executable, str(PROGRAM), "mpi"]) == "right\n"


def test_the_package_does_not_import_engines():
    script = "import sys, warpfold, warpfold.distributed; print('mpi4py' in sys.modules, 'torch' in sys.modules)"
    assert run([sys.executable, "-c", script]) == "False False\n"
