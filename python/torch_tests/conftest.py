"""Devices, and settings of hypothesis and of PyTorch's compiler."""

import os
import tempfile

# Graphs that were compiled before this run would hide what the compiler does.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="warpfold-torch-")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import pytest
import torch
import warpfold.torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def exact():
    """The whole test runs with exact sums."""
    with warpfold.torch.exact():
        yield


@pytest.fixture(autouse=True)
def _ends_as_it_began():
    torch.manual_seed(0)
    yield
    assert not warpfold.torch.is_enabled()
