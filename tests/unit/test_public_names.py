"""What each package offers by name: whoever builds on it finds these, and no other by accident."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import seqcls
from seqcls.engines.member import draw_initial
from seqcls.errors import SeqclsError
from sweeps.api import reading
from tests.conftest import ROOT

PUBLIC = {
    "seqcls": [
        *("MODELS", "Problem", "RunConfig", "TASKS", "TrainedModel", "evaluate"),
        "load_run",
        "resolve",
        "train",
    ],
    "seqcls.adapters": ["ADAPTERS", "FORMAT", "ForeignWeights", "read_weights"],
    "seqcls.kinds": [
        *("ACCURACY", "ErrorColumn", "Examples", "KINDS", "Kind", "MISCLASSIFIED", "Measure"),
        *("Words", "examples_of", "kind_name"),
    ],
    "seqcls.tasks": ["CountTask", "InputTask", "LanguageTask", "TASKS", "Task"],
    "sweeps.datasets": ["FileContent", "read_content", "read_dataset", "read_rows_or_automaton"],
    "seqcls.counts": ["counts_suffice"],
    "seqcls.pictures": ["COLUMNS", "Page", "ROWS", "glyphs_of"],
    "seqcls.sampling": ["SAMPLERS", "Sampler"],
    "seqcls.models": [
        *("IN_SCORES", "MODELS", "OF_ATTENTION", "OF_MIXING", "OF_PICTURES", "POSITIONS"),
        *("architecture_of_letter", "architectures_by_letter", "check_network"),
        *("compiled_program", "no_mixing", "settings_of"),
    ],
    "seqcls.models.positions": [
        *("POSITIONS", "longest_readable", "read_ids", "special_tokens", "table_size")
    ],
    "sweeps": [],
    "sweeps.work.executors": ["Executor", "GroupEnded", "OnJobProgress", "start"],
    "sweeps.api": [
        *(
            "ablate",
            "automaton",
            "automaton_inside",
            "by_drawn",
            "causes",
            "compare",
            "config",
            "data",
            "delete",
        ),
        *("draw", "engines", "errors", "errors_of_run"),
        *("estimate", "explain", "export", "family", "figures", "fit_shortcuts", "give"),
        *("import_predictions", "in_both_precisions"),
        *(
            "judge",
            "lengths",
            "load_weights",
            "log_results",
            "merge",
            "minimal",
            "model",
            "more",
            "open_store",
        ),
        *("pack", "patch", "populations", "predict"),
        *(
            "proofs",
            "protocol",
            "prove",
            "remedies",
            "report",
            "resume",
            "retry",
            "rules",
            "runs",
            "seeds",
            "sensitive",
            "shortcuts",
            "shortest",
        ),
        *("states", "status", "stop", "submit", "theory", "upgrade", "verdict", "verify", "work"),
    ],
    "sweeps.store.writer": [
        *("Claim", "ClaimLosses", "GRACE_SECONDS", "LONGEST_NAME", "LONGEST_NOTE", "Merged"),
        *("archive", "beat", "claim", "delete", "delete_view"),
        *("end_worker", "launch_for_agent", "merge", "record", "record_causes", "record_losses"),
        *("record_lost", "record_perturbations", "record_proof", "record_verdict"),
        *("register_worker", "release", "release_dead", "resume", "retry", "save_view", "stop"),
        *("submit", "write_note"),
    ],
    "dashboard": [],
}


def public(module: ModuleType) -> list[str]:
    """The names that a module offers: those it lists, or else those that it makes itself."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = vars(module).items()
    return sorted(
        name
        for name, value in own
        if name[0] != "_"
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", module.__name__) in (module.__name__, "seqcls.plugins")
        and not isinstance(value, type)
    )


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_package_offers_these_names(name: str) -> None:
    module = import_module(name)
    assert public(module) == PUBLIC[name]
    assert all(hasattr(module, own) for own in PUBLIC[name])


@pytest.mark.parametrize("name", ["seqcls", "sweeps.api"])
def test_a_notebook_is_offered_these_names_alone(name: str) -> None:
    offered = [own for own in dir(import_module(name)) if own[0] != "_"]
    assert offered == PUBLIC[name]


def test_every_read_by_name_is_one_that_something_on_the_screen_asks_for() -> None:
    screen = "\n".join(path.read_text() for path in ROOT.glob("dashboard/**/*.py"))
    imports = re.findall(r"from sweeps\.api\.reading import (\([^)]*\)|.*)", screen)
    asked = {*re.findall(r"\breading\.(\w+)", screen), *re.findall(r"\w+", " ".join(imports))}
    assert set(reading.__all__) - asked == set()


def test_the_science_is_there_by_one_light_import() -> None:
    asked = (
        "import sys; known = set(sys.modules); import seqcls; print(*set(sys.modules) - known);"
        "print(seqcls.resolve(seqcls.RunConfig()).task.alphabet)"
    )
    command = [sys.executable, "-c", asked]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    loaded, alphabet = said.splitlines()
    assert {x.partition(".")[0] for x in loaded.split()} <= {"seqcls", *sys.stdlib_module_names}
    assert alphabet == "abc"


def test_a_model_takes_a_string_as_text_or_says_what_it_wants() -> None:
    problem = seqcls.resolve(seqcls.RunConfig(task="parity", hidden_size=4))
    model = seqcls.TrainedModel(problem, draw_initial([(problem, 0)])[0])
    assert model.answer("0110") == model.answer([0, 1, 1, 0]) == model.answer(list("0110"))
    assert model.answer("0111").label is True
    for wrong in (110, None, 1.5, ("0", 1.5), "012", object()):
        with pytest.raises(SeqclsError) as refused:
            model.answer(wrong)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["seqcls", "sweeps", "dashboard"])
def test_a_package_says_that_it_is_typed(name: str) -> None:
    assert (ROOT / name / "py.typed").exists()


def packages() -> list[str]:
    files = [
        Path(own)
        for top in ("seqcls", "sweeps", "dashboard")
        for own in ROOT.glob(f"{top}/**/__init__.py")
    ]
    return sorted(".".join(file.relative_to(ROOT).parent.parts) for file in files)


def test_every_other_package_offers_its_modules_alone() -> None:
    for name in packages():
        if name not in PUBLIC:
            assert public(import_module(name)) == [], name
