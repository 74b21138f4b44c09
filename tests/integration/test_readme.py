"""The README is short, and what it names is there."""

import re
import tomllib

from sweeps.grid.spec import parse_spec
from tests.blocks import PAGES, blocks_of
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 150
    assert len(re.findall(r"^!\[", README, re.MULTILINE)) == 1


def test_the_make_targets_and_files_that_it_names_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE)
    assert {"run", "test", "docs", "bench"} <= set(targets)
    for target in targets:
        assert f"\n{target}:" in makefile, target
    for link in re.findall(r"\]\(([\w./]+)\)", README):
        assert (ROOT / link).exists(), link


def test_it_leads_to_every_page() -> None:
    linked = set(re.findall(r"\(docs/(\w+\.md)\)", README))
    # The first page is for the site, as the README is for the repository; and pages made from it.
    assert {page.name for page in PAGES} - linked == {"index.md", "api.md"}


def test_its_question_is_a_short_sweep() -> None:
    (text,) = (block.text for block in blocks_of(README) if block.language == "toml")
    assert parse_spec(tomllib.loads(text)).num_runs() == 20
    assert len(text.splitlines()) <= 15
