"""The device that trained a run, which is stored with its engine."""

import pytest
import torch

from seqcls.engines.pytorch.training import choose_device
from seqcls.errors import DeviceError
from sweeps.api.failures import _engine_that_can
from sweeps.work.jobs import name_with_device
from tests import zoo


def test_engine_name_records_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert name_with_device("strings", "auto") == "strings on cuda"
    assert name_with_device("strings", "cuda") == "strings on cuda"
    assert name_with_device("strings", "cpu") == "strings"
    assert name_with_device("lanes", "auto") == "lanes"
    assert [choose_device(x).type for x in ("auto", "cpu", "cuda")] == ["cuda", "cpu", "cuda"]
    with pytest.raises(DeviceError, match="device 'tpu': expected auto, cpu or cuda"):
        choose_device("tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")
    assert name_with_device("strings", "auto") == "strings"
    with pytest.raises(DeviceError, match="this machine has no GPU"):
        name_with_device("strings", "cuda")


def test_retraining_uses_the_stored_engine_or_one_that_can() -> None:
    problem = zoo.problem("rotary", precision="float32")
    assert _engine_that_can(problem, "strings on cuda") == "strings"
    assert _engine_that_can(problem, "lanes") == "lanes"
    # One that an older version had for it.
    assert _engine_that_can(problem, "fused") == "auto"
