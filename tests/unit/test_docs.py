"""Pages of the docs on languages, transductions and shortcuts, and the pictures of the docs."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.shortcuts import above_aim, read_readers
from seqcls.config import default_fields
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.tasks import TASKS
from tests.blocks import rows_of
from tests.browser.pictures import FOLDER, PICTURES
from tests.conftest import ROOT
from tests.tasks import LANGUAGES, TRANSDUCTIONS

SETTINGS: dict[str, dict[str, Any]] = {
    "counting": {"alphabet": "ab", "formula": "a % 2 == 0"},
    "regular": {"alphabet": "ab", "pattern": "(ab)*"},
    "rewrite": {"alphabet": "abc", "pattern": "a(b+)", "replacement": r"\1a"},
}


LANGUAGE_ROWS, TRANSDUCTION_ROWS = (
    {name: own for name, own in rows_of(page).items() if name not in ("task", "field")}
    for page in ("languages.md", "transductions.md")
)


def test_docs_have_a_row_for_each_task_and_count_the_languages() -> None:
    assert sorted(LANGUAGE_ROWS) == LANGUAGES
    assert sorted(TRANSDUCTION_ROWS) == TRANSDUCTIONS
    (number,) = re.findall(r"(\d+)\s+more have names", (ROOT / "docs" / "asking.md").read_text())
    assert int(number) == len(set(LANGUAGES) - {"regular", "counting", "subregular"})


@pytest.mark.parametrize("name", LANGUAGES)
def test_documented_examples_of_a_language_have_their_labels(name: str) -> None:
    tokens, _, fields, positive, negative = LANGUAGE_ROWS[name]
    config = configuration({"task": name, **SETTINGS.get(name, {})})
    read = set(re.findall(r"`(\w+)`", fields))
    assert read == TASKS[name].reads <= set(default_fields())
    alphabet = resolve(config).task.alphabet
    if name not in ("contains_all", *SETTINGS):
        requirement = (
            f"the tokens of {name} begin with its default alphabet in backticks: `{alphabet}`"
        )
        assert tokens.startswith(f"`{alphabet}`"), requirement
    tokenizer = resolve(config).tokenizer
    texts = [positive.strip("`"), negative.strip("`")]
    letters = [[x - FIRST_LETTER for x in tokenizer.encode(text)[1:]] for text in texts]
    strings = TokenStrings.of_lists(len(alphabet), letters)
    assert resolve(config).language.labels(strings).tolist() == [True, False]


@pytest.mark.parametrize("name", TRANSDUCTIONS)
def test_documented_examples_of_a_transduction_are_right(name: str) -> None:
    _, _, fields, shown, becomes = TRANSDUCTION_ROWS[name]
    assert set(re.findall(r"`(\w+)`", fields)) == TASKS[name].reads <= set(default_fields())
    defaults = {field: default_fields()[field] for field in TASKS[name].reads}
    makes: Any = TASKS[name]
    task = makes(**{**defaults, **SETTINGS.get(name, {})})
    words = re.search(r"`([^`]*)` becomes `([^`]*)`", str(type(task).__doc__))
    assert words
    for text, right in (words.groups(), (shown.strip("`"), becomes.strip("`"))):
        letters = [task.alphabet.index(token) for token in text]
        found = task.target(np.array(letters, dtype=np.uint8)).tolist()
        assert "".join(task.alphabet[letter] for letter in found) == right


def test_shortcuts_page_agrees_with_its_csv() -> None:
    found = pd.read_csv(ROOT / "docs" / "shortcuts.csv").fillna({"decided_by": "", "negatives": ""})
    assert sorted(set(found["task"])) == sorted([*LANGUAGES, *TRANSDUCTIONS])
    page = (ROOT / "docs" / "shortcuts.md").read_text()
    text = " ".join(page.split())
    assert "wherever nothing that readers look at decides the language, but for two" in text
    assert above_aim(found) == ["bucket_sort", "flip_flop"]
    assert f"<!-- readers -->\n\n{read_readers(found)}\n\n<!-- end of readers -->" in page


MAX_BYTES = 250_000


def test_pictures_in_docs_are_those_taken() -> None:
    pages = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    shown = {name for page in pages for name in re.findall(r"pictures/(\S+)\)", page.read_text())}
    there = {path.name for path in FOLDER.iterdir()}
    assert shown == there == {f"{name}.png" for name in PICTURES}
    assert max(path.stat().st_size for path in FOLDER.iterdir()) < MAX_BYTES
