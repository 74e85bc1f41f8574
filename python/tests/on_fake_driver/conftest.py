"""What holds after each test: tensors are deleted, and the state of the thread is as before."""

import gc

import fake_driver
import pytest
from fake_arrays import Counts, Current, Managed, TableArray

fake_driver.use_device(0)


@pytest.fixture(autouse=True)
def good_guest():
    gc.collect()
    assert not Managed.alive
    Current.cupy_stream = Current.cupy_device = Current.torch_stream = 0
    Current.is_grad_enabled = True
    TableArray.stream, TableArray.allocation_error, TableArray.fails = 0, None, False
    TableArray.allocates_on = None
    Counts.exported = Counts.deleted = 0
    fake_driver.take_calls()
    before = fake_driver.thread_state()
    yield
    gc.collect()
    assert fake_driver.thread_state() == before, "the current context and the capture mode"
    assert not Managed.alive and Counts.exported == Counts.deleted, "each tensor is deleted once"
