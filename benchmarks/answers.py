"""Seconds from a changed string to its answer on the page Model, in a real browser.

python -m benchmarks.answers

briefly trains two Transformers of 2 blocks with 4 heads and an LSTM, opens the states of each, then
two of them side by side, and types strings of 40 tokens. An answer counts once the page is complete
and idle.
"""

import random
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.pages import Shown, Window, browser_window, drawn
from benchmarks.served import FLAGS, find_browser, serve
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work

LENGTH = 40
STRINGS = 7
"""Typed of each model, after one that is not counted."""

BLOCKS = {"num_blocks": 2, "num_attention_heads": 4, "positions": "sinusoidal"}
MODELS = [BLOCKS, {"architecture": "lstm"}, {**BLOCKS, "positions": "rotary"}]
SHOWN = {
    "2 blocks, 4 heads": "run=1",
    "LSTM": "run=2",
    "two Transformers": "run=1&beside=3",
    "Transformer and LSTM": "run=1&beside=2",
}
"""The link of each view."""

FIXED = {
    "task": "even_pairs", "hidden_size": 16, "attention_head_size": 4, "readout": "last",
    "train_size": 64, "train_batch_size": 32, "validation_size": 32, "test_size": 200,
    "train_max_length": 8, "validation_max_length": 8, "test_max_length": 64,
    "max_num_epochs": 1, "min_num_epochs": 1,
}  # fmt: skip


def main() -> None:
    """Prints the median and the slowest answer of each model, and the server's processor time."""
    executable = find_browser()
    if executable is None:
        print("answers: no browser on this machine, so nothing is measured")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "answers.db"
        store = open_writer(str(path))
        spec = {"name": "any", "model_seeds": [0], "fixed": FIXED, "configurations": MODELS}
        work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        for name, link in SHOWN.items():
            found = _answers(browser, path, link)
            seconds = [own.seconds for own in found]
            processor = statistics.median(own.processor for own in found)
            print(
                f"  {name:20} a changed string of {LENGTH}: median "
                f"{statistics.median(seconds):.2f} s, slowest {max(seconds):.2f} s "
                f"(server {processor:.2f} s of a processor)",
                flush=True,
            )
        browser.close()


def _answers(browser: Browser, db: Path, link: str) -> list[Shown]:
    chosen = random.Random(0)
    with serve(db) as server, browser_window(browser, server) as shown:
        shown.page.goto(f"{server.url}/model?{link}&view=States&string=01")
        shown.page.get_by_text("Along the string").wait_for()
        drawn(shown, lambda: None, "")
        strings = ["".join(chosen.choices("01", k=LENGTH)) for _ in range(STRINGS + 1)]
        return [_typed(shown, string) for string in strings][1:]


def _typed(shown: Window, string: str) -> Shown:
    box = shown.page.get_by_role("combobox", name="String")
    box.click()
    box.fill(string)

    def answered() -> None:
        box.press("Enter")
        shown.page.wait_for_url(f"**string={string}**")

    return drawn(shown, answered, "")


if __name__ == "__main__":
    main()
