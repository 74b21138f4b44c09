"""Export of a stored model: its weights, and a PyTorch file that needs no other package."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import seqcls
from seqcls.adapters.formats import OWN
from seqcls.adapters.vocabulary import ROLES
from seqcls.adapters.writing import write as write_format
from seqcls.config import ABOUT
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.questions import RunModel
from seqcls.standalone import network_json, network_settings, source_of
from seqcls.strings.token_strings import TokenStrings
from seqcls.text import count, list_values
from seqcls.weights import to_bytes
from sweeps.api.models import model, trained_model
from sweeps.files import refuse_taken, whole_files
from sweeps.grid.written_spec import toml_of
from sweeps.store.database import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries

LONGEST_INPUT = 1_000
"""Maximum input length, in tokens, for which the file has the limit of the output's length."""

_README = """# {name}

{task}

`model.safetensors` has the model's weights, {about}
and `vocabulary.json` the ids of its tokens. {origin}
`seqcls import . --task TASK` puts it into a database again.

It computes: {computes}.

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
    """Writes a model into a folder: weights, settings, vocabulary, `model.py`, specification.

    Args:
        store: the database.
        run: its id, or its sweep and model seed, as `heads/2`.
        folder: made where it is missing.
        epoch: the epoch of the weights; the best one by default.
        form: `torch`, or `gpt2` for the tensors and settings of Hugging Face instead of `model.py`.
        force: replace files, in a folder that holds no others.

    Returns:
        The files.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
        ConfigError: a file is there, or the model reads features that only its task can compute.
    """
    run_id = queries.find_run(store, run)
    seed = queries.check_done(store, run_id, "has no model to look into").model_seed
    files = files_of(trained_model(store, run_id, epoch), f"run_{run_id}", seed, form)
    paths = [Path(folder) / name for name in files]
    refuse_taken(paths, force=force)
    with whole_files(Path(folder), force=force) as new:
        for name, content in files.items():
            (new / name).write_bytes(content)
    return paths


def describe_file(problem: Problem) -> str:
    """Describes the computation of the file of a model in words."""
    parts, longest = [list_values(network_settings(problem.network))], _longest(problem)
    known = "any number of tokens" if longest is None else f"up to {count(longest, 'token')}"
    parts.append(f"of strings of {known} out of {' '.join(problem.task.alphabet):.200}")
    if outputs := _of_outputs(problem):
        width = outputs["beam_width"]
        how = f"a beam of {width}" if width > 1 else "the likeliest token"
        parts.append(f"an output written by {how}, as long as its run lets it be")
    elif problem.at_places:
        parts.append("numbers at every place")
    else:
        parts.append("a logit, positive where a string is in the language")
    return "; ".join(parts)


def files_of(model: TrainedModel, name: str, seed: int, form: str = "torch") -> dict[str, bytes]:
    """Returns the files of a model's folder by name; arguments and errors are those of `give`."""
    # Dropout is for training, and the standalone file only answers.
    problem, weights = model.problem.without_dropout, to_bytes(model.weights)
    texts = {"vocabulary.json": json.dumps(_ids(problem)) + "\n"}
    if form != "torch":
        tensors, settings = write_format(form, problem.network, model.weights)
        weights, about = to_bytes(tensors), f"`config.json` its settings, as {form} has them,"
    else:
        settings, about = _settings(problem), "`config.json` its settings"
        settings["empty"] = problem.known_strings is not None or model.is_input(())
        texts["model.py"] = source_of(problem.network)
        about += ", `model.py` the model as one file of PyTorch (`python model.py STRING`),"
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
        computes=describe_file(problem),
        version=seqcls.__version__,
        digest=hashlib.sha256(weights).hexdigest(),
    )
    return {"model.safetensors": weights, **{x: text.encode() for x, text in texts.items()}}


def _settings(problem: Problem) -> dict[str, Any]:
    """Returns the settings that `model.py` and the import of the model read."""
    fields = {
        field: value
        for field, value in problem.config.changed.items()
        if field in ABOUT and ABOUT[field].group == "Network" and field != "num_letters"
    }
    return {
        "format": OWN,
        "alphabet": list(problem.task.alphabet),
        "network": {"architecture": problem.config.architecture, **fields},
        "settings": network_json(problem.network),
        "longest": _longest(problem),
        **_of_outputs(problem),
    }


def _longest(problem: Problem) -> int | None:
    """Returns the length of the longest string that the file answers; None without a limit."""
    end = longest_readable(problem.network)
    known = None if problem.lacks("outputs") else LONGEST_INPUT
    positions = None if end is None else max(end - problem.kind.prompt_length(0), 0)
    return min((x for x in (known, positions) if x is not None), default=None)


def _of_outputs(problem: Problem) -> dict[str, Any]:
    """Returns the beam width and the limits of output lengths by input length; nothing for a model
    without outputs.
    """
    if problem.lacks("outputs"):
        return {}
    # PyTorch takes a second or two to load.
    from seqcls.decode import output_limits

    lengths = np.arange((_longest(problem) or 0) + 1)
    inputs = TokenStrings(problem.tokenizer.num_letters, lengths)
    config = problem.config
    return {
        "beam_width": config.beam_width if config.decoding == "beam" else 1,
        "limits": " ".join(map(str, output_limits(problem, inputs).tolist())),
    }


def _ids(problem: Problem) -> dict[str, int]:
    """Returns the ids of the tokens, special ones under names that the alphabet does not have."""
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
    return model(open_reader(db), run, epoch)
