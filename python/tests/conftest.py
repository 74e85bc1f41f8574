"""Settings of hypothesis, and what several tests use."""

import os

from hypothesis import HealthCheck, settings

# In CI the same examples are tried each time.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=bool(os.environ.get("CI")) or os.environ.get("WARPFOLD_PYTHON") == "required",
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")

# `test_on_fake_driver.py` runs these with another driver.
collect_ignore = ["on_fake_driver"] if "fake_driver" not in os.environ.get("WARPFOLD_LIBCUDA", "") else []
