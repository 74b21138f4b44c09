"""The function of letter counts is the function of strings."""

import pytest
import torch
from hypothesis import given, settings

from seqcls.config import NetworkConfig
from seqcls.counts.forward import group_logits, log_counts
from seqcls.models.initialization import initial_parameters
from tests.conftest import examples
from tests.unit.networks import Case, cases, plain_model


@pytest.mark.slow
@given(cases(any_depth=True))
@settings(max_examples=examples(200))
def test_logits_and_gradients_are_those_of_the_plain_model(case: Case) -> None:
    parameters = case.stacked()
    logits = group_logits(case.config, parameters, log_counts(case.config, case.counts))
    # Unequal weights of strings, so that no gradient can hide behind a symmetry.
    share = torch.linspace(-1, 2, len(case.strings), dtype=torch.float64)
    (logits * share).sum().backward()
    for member, own in enumerate(case.members):
        model = plain_model(case.config, own)
        expected = model(case.ids)
        torch.testing.assert_close(logits[member], expected, rtol=1e-12, atol=1e-13)
        (expected * share).sum().backward()
        for name, parameter in model.named_parameters():
            gradient = parameters[name].grad
            assert parameter.grad is not None
            assert gradient is not None
            scale = max(float(parameter.grad.abs().max()), 1.0) if parameter.numel() else 1.0
            torch.testing.assert_close(
                gradient[member], parameter.grad, rtol=1e-12, atol=1e-12 * scale
            )


@given(cases(any_depth=True))
def test_a_members_logits_do_not_depend_on_the_other_members(case: Case) -> None:
    encoded = log_counts(case.config, case.counts)
    together = group_logits(case.config, case.stacked(), encoded)
    for member, own in enumerate(case.members):
        alone = {name: value.unsqueeze(0) for name, value in own.items()}
        logits = group_logits(case.config, alone, encoded)
        torch.testing.assert_close(logits[0], together[member], rtol=1e-12, atol=1e-13)


def test_ten_million_letters_cost_what_ten_do() -> None:
    config = NetworkConfig(precision="float64")
    case = Case(config, [initial_parameters(config, 0)], [])
    counts = torch.tensor([[10_000_000, 0, 0], [1, 10_000_000, 3]]).numpy()
    logits = group_logits(config, case.stacked(), log_counts(config, counts))
    assert logits.isfinite().all()
    # So many equal letters leave CLS, attended to once, without weight.
    alone = NetworkConfig(precision="float64", no_attend_cls=True)
    one = group_logits(alone, case.stacked(), log_counts(alone, counts[:1] // 10_000_000))
    torch.testing.assert_close(logits[:, :1], one, rtol=1e-5, atol=1e-5)
