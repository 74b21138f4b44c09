"""Networks to be looked into, for tests."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from seqcls.config import RunConfig
from seqcls.inside.network import Network
from seqcls.model import Transformer
from tests.unit.networks import Case, cases


def networks_of(case: Case) -> list[Network]:
    """Each member of a case, to be looked into."""
    config = RunConfig(**{**case.config.model_dump(), "required_letters": "a"})
    return [
        Network.of(config, {name: value.numpy() for name, value in member.items()})
        for member in case.members
    ]


def texts_of(case: Case) -> list[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(alphabet[letter] for letter in string) for string in case.strings]


@st.composite
def cases_of_a_task(draw: st.DrawFn) -> Case:
    """A case with a letter that is not required, so that there is a task."""
    case = draw(cases())
    assume(case.config.num_letters > 1)
    return case


def random_network(seed: int = 0, **fields: object) -> Network:
    """An untrained network with larger weights than usual, so that its states differ."""
    config = RunConfig.from_mapping({"precision": "float64", **fields})
    random = np.random.default_rng(seed)
    shapes = {name: p.shape for name, p in Transformer(config).state_dict().items()}
    return Network.of(config, {name: random.normal(size=shape) for name, shape in shapes.items()})
