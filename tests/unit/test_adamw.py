"""The optimizer of groups: PyTorch's, to the last bit, without what its class loads."""

import subprocess
import sys

import torch
from torch import Tensor

from seqcls.engines.pytorch.groups import AdamW


def values() -> list[Tensor]:
    drawn = torch.Generator().manual_seed(3)
    return [torch.randn(size, generator=drawn).requires_grad_() for size in ((3, 5), (3, 2, 4))]


def with_gradients(of: list[Tensor], step: int) -> None:
    drawn = torch.Generator().manual_seed(step)
    for value in of:
        value.grad = torch.randn(value.shape, generator=drawn)


def test_its_steps_are_those_of_pytorch_also_where_a_value_gets_no_gradient() -> None:
    ours, theirs = values(), values()
    optimizer = AdamW(ours, weight_decay=0.01)
    reference = torch.optim.AdamW(theirs, lr=0.1, weight_decay=0.01, fused=True)
    for step in range(5):
        rate = 0.1 / (1 + step)
        reference.param_groups[0]["lr"] = rate
        for each in (ours, theirs):
            with_gradients(each, step)
            if step == 2:
                each[1].grad = None
        optimizer.step(rate)
        reference.step()
        assert all(map(torch.equal, ours, theirs))
    assert not torch.equal(ours[0], values()[0])


def test_rows_that_are_kept_go_on_as_they_would_have_beside_the_others() -> None:
    all_of_them, some = values(), values()
    whole = AdamW(all_of_them, weight_decay=0.0)
    cut = AdamW(some, weight_decay=0.0)
    with_gradients(all_of_them, 0)
    with_gradients(some, 0)
    whole.step(0.1)
    cut.step(0.1)
    some = [value.detach()[[0, 2]].requires_grad_() for value in some]
    cut.keep(some, [0, 2])
    with_gradients(all_of_them, 1)
    for value, full in zip(some, all_of_them, strict=True):
        assert full.grad is not None
        value.grad = full.grad[[0, 2]]
    whole.step(0.1)
    cut.step(0.1)
    assert all(
        torch.equal(value, full[[0, 2]]) for value, full in zip(some, all_of_them, strict=True)
    )


def test_training_with_pytorch_loads_no_compiler() -> None:
    """It would take as long again as all of PyTorch, in every process that trains."""
    program = (
        "import sys\n"
        "from seqcls.problem import configuration, resolve\n"
        "from seqcls.training import train_group\n"
        "sizes = dict(train_size=8, validation_size=4, max_num_epochs=1, min_num_epochs=1)\n"
        "problem = resolve(configuration({'task': 'parity', **sizes}))\n"
        "for engine in ('strings', 'counts'):\n"
        "    assert train_group([(problem, 0)], engine=engine)[0].failure is None\n"
        "assert 'torch' in sys.modules\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
