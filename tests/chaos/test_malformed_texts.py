"""Expressions, formulas, strings and families of any kind get a short answer."""

import json
import resource
import subprocess
import sys
import time
from typing import Any

import pytest

from seqcls.errors import SeqclsError
from tests.chaos.malformed import READ, texts
from tests.conftest import ROOT

MAX_BYTES = 500_000_000
MAX_SECONDS = 2.0
"""Seconds of computing, for any one text: a machine that is busy with other things is no fault."""


def try_texts(number: int, seed: int) -> dict[str, Any]:
    """What is said of so many texts, here: what none may be, and what they took at most."""
    # What is loaded once counts for none of them.
    for kind, text in (("pattern", "ab"), ("formula", "a > b"), ("family", "a{n}")):
        READ[kind](text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wrong: list[str] = []
    refused, slowest = 0, (0.0, "")
    for kind, text in texts(number, seed):
        began = time.process_time()
        try:
            READ[kind](text)
        except SeqclsError as error:
            refused += 1
            if not str(error).strip():
                wrong.append(f"{kind} {text[:80]!r}: nothing is said")
        except Exception as error:
            wrong.append(f"{kind} {text[:80]!r}: {type(error).__name__}: {error}")
        slowest = max(slowest, (time.process_time() - began, f"{kind} {text[:80]!r}"))
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return {"refused": refused, "wrong": wrong, "slowest": slowest, "grown": grown}


@pytest.mark.cases(25)
def test_every_text_gets_a_short_answer(seed: int) -> None:
    number = 400
    program = (
        f"import json; from {__name__} import try_texts; "
        f"print(json.dumps(try_texts({number}, {seed})))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert completed.returncode == 0, completed.stderr
    found = json.loads(completed.stdout)
    assert found["wrong"] == []
    assert found["refused"] > number // 2
    assert found["slowest"][0] < MAX_SECONDS
    assert found["grown"] < MAX_BYTES
