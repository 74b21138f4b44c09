"""A stored model given away: its weights, and one file of PyTorch that needs nothing of this."""

import hashlib
import json
from pathlib import Path
from typing import Any

import seqcls
from seqcls.adapters import FORMAT
from seqcls.adapters.base import ROLES
from seqcls.adapters.gpt2 import write as write_gpt2
from seqcls.config import ABOUT
from seqcls.errors import ConfigError, Parameter
from seqcls.interpretability.trained_model import RunModel, TrainedModel
from seqcls.problem import Problem
from seqcls.standalone import network_json, source_of
from seqcls.weights import to_bytes
from sweeps.api.models import trained_model
from sweeps.files import refuse_taken, whole_files
from sweeps.grid.written_spec import toml_of
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries

_HEAD = '''"""A model that seqcls gave away, as one file: it needs torch and safetensors alone.

    python model.py STRING...

says what the model answers; `load()` gives the model, `logits` and `write` ask it.
"""

import json
import sys
from pathlib import Path

from safetensors.torch import load_file
'''

_TAIL = '''

class Config:
    """The network's settings."""

    def __init__(self, **settings):
        vars(self).update(settings)

    def model_copy(self, update):
        return Config(**{**vars(self), **update})


HERE = Path(__file__).parent
ABOUT = json.loads((HERE / "config.json").read_text(encoding="utf-8"))
IDS = json.loads((HERE / "vocabulary.json").read_text(encoding="utf-8"))
BEGIN, PADDING = 0, 1


def load():
    """The model with its weights; dropout is off."""
    config = Config(**ABOUT["settings"])
    model = MODEL(config).to(getattr(torch, config.precision))
    values = load_file(str(HERE / "model.safetensors"))
    if other := {name for name, _ in model.named_parameters()} ^ values.keys():
        raise ValueError(f"model.safetensors: {min(other)}: not a tensor for each parameter")
    # Buffers, and parameters of several names, are as the model makes them.
    model.load_state_dict(values, strict=False)
    return model.eval()


def encode(string):
    """The ids that the model reads of a string: a text, or a list of tokens."""
    if isinstance(string, str):
        named = any(len(token) > 1 for token in ABOUT["alphabet"])
        string = string.split() if named else list(string)
    letters = [IDS[token] for token in string]
    if ABOUT["settings"]["writes"]:
        return [BEGIN, *letters, len(IDS) - 2]
    readout = ABOUT["settings"]["readout"]
    return [BEGIN] * (readout == "first") + letters + [BEGIN] * (readout == "last")


@torch.no_grad()
def logits(model, strings):
    """A logit for each string, positive where the model takes it for one of the language.

    Of answers at every place the numbers of each: (string, place, number).
    """
    rows = [encode(string) for string in strings]
    width = max(map(len, rows), default=0)
    return model(torch.tensor([row + [PADDING] * (width - len(row)) for row in rows]))


@torch.no_grad()
def write(model, string, longest=1000):
    """The output that the model writes for an input, the likeliest token each time."""
    ids, written = encode(string), []
    while len(written) < longest:
        following = model(torch.tensor([ids]))[0, -1]
        following[[BEGIN, PADDING, len(IDS) - 2]] = -torch.inf
        best = int(following.argmax())
        if best == len(IDS) - 1:
            break
        ids.append(best)
        written.append(ABOUT["alphabet"][best - 2])
    return written


if __name__ == "__main__":
    model = load()
    for string in sys.argv[1:]:
        if ABOUT["settings"]["writes"]:
            print(string, *write(model, string))
        else:
            print(string, logits(model, [string])[0].tolist())
'''

_README = """# {name}

{task}

`model.safetensors` has the model's weights, {about}
and `vocabulary.json` the ids of its tokens. {origin}
`seqcls load .` loads it into a database again.

To cite: The seqcls developers, *seqcls: which small sequence models fail on longer strings, on
which strings, and why*, version {version}; weights with the SHA-256 `{digest}`.
"""


def give(
    store: Store,
    run: int | str,
    folder: str | Path,
    epoch: int | None = None,
    *,
    form: str = "torch",
    force: bool = False,
) -> list[Path]:
    """Writes a model into a folder: weights, settings, vocabulary, `model.py`, what trained it.

    Args:
        store: the database.
        run: its id, or its sweep and model seed, as `heads/2`.
        folder: made where it is missing.
        epoch: whose weights; the best one's if none is named.
        form: `torch`, or `gpt2` for the tensors and settings of Hugging Face instead of `model.py`.
        force: whether files are replaced that this program wrote and nobody has changed since.

    Returns:
        The files.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
        ConfigError: a file is there, or the model reads what only its task knows.
    """
    reader, run_id = queries.open_run(store, run)
    seed = queries.stored_model(reader, run_id).model_seed
    files = files_of(trained_model(reader, run_id, epoch), f"run_{run_id}", seed, form)
    paths = [Path(folder) / name for name in files]
    refuse_taken(paths, force=force)
    with whole_files(Path(folder), force=force) as new:
        for name, content in files.items():
            (new / name).write_bytes(content)
    return paths


def files_of(model: TrainedModel, name: str, seed: int, form: str = "torch") -> dict[str, bytes]:
    """What a model's folder holds, by the files' names; arguments and errors as `give`."""
    problem, weights = model.problem.without_dropout, to_bytes(model.weights)
    texts = {"vocabulary.json": json.dumps(_ids(problem)) + "\n"}
    if form == "gpt2":
        tensors, settings = write_gpt2(problem.network, model.weights)
        weights, about = to_bytes(tensors), "`config.json` its settings, as Hugging Face has them,"
    elif form == "torch":
        settings, about = _settings(problem), "`config.json` its settings"
        source, model_class = source_of(problem.network)
        made = _TAIL.replace("MODEL(config)", f"{model_class}(config)")
        texts["model.py"] = _HEAD + source + made
        about += ", `model.py` the model as one file of PyTorch (`python model.py STRING`),"
    else:
        raise ConfigError(Parameter("form", form), ": expected torch or gpt2")
    texts["config.json"] = json.dumps(settings, indent=1) + "\n"
    origin = "The weights were trained elsewhere."
    if not model.config.is_loaded:
        fixed = {x: value for x, value in model.config.changed.items() if x != "plugins"}
        spec = {"name": name, "description": "Trains the model again.", "model_seeds": [seed]}
        texts["specification.toml"] = toml_of(json.dumps({**spec, "fixed": fixed}))
        origin = "`seqcls sweep specification.toml` trains it again."
    texts["README.md"] = _README.format(
        name=name,
        task=problem.task.describe(),
        about=about,
        origin=origin,
        version=seqcls.__version__,
        digest=hashlib.sha256(weights).hexdigest(),
    )
    return {"model.safetensors": weights, **{x: text.encode() for x, text in texts.items()}}


def _settings(problem: Problem) -> dict[str, Any]:
    """What `model.py` reads, and what loads the model again."""
    fields = {
        field: value
        for field, value in problem.config.changed.items()
        if field in ABOUT and ABOUT[field].group == "Network" and field != "num_letters"
    }
    return {
        "format": FORMAT,
        "alphabet": list(problem.task.alphabet),
        "network": {"architecture": problem.config.architecture, **fields},
        "settings": network_json(problem.network),
    }


def _ids(problem: Problem) -> dict[str, int]:
    """The ids of the tokens, special ones by names that the alphabet does not have."""
    alphabet = list(problem.task.alphabet)
    special = {role: next(x for x in ROLES[role] if x not in alphabet) for role in ROLES}
    network = problem.network
    reads_end = network.head == "string" and network.readout == "last"
    tokens = [special["end" if reads_end else "begin"], special["padding"], *alphabet]
    if network.num_letters > len(alphabet):
        tokens += [special["separator"], special["end"]]
    return {token: number for number, token in enumerate(tokens)}


def load_run(db: str | Path, run: int | str, epoch: int | None = None) -> RunModel:
    """Implements `seqcls.load_run`."""
    reader, run_id = queries.open_run(open_reader(str(db)), run)
    model = trained_model(reader, run_id, epoch)
    if epoch is not None:
        # Test results are of the best one.
        return RunModel(model.problem, model.weights)
    scores = queries.length_scores(reader, [run_id])
    shares = 1 - scores["wrong"] / scores["tested"]
    by_length = tuple(zip(scores["length"].tolist(), shares.tolist(), strict=True))
    return RunModel(model.problem, model.weights, by_length)
