"""Charts in files without their pictures, for tests of the rest of the file."""

import hashlib
import html
import json
from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces slow drawing of charts in files by pictures that name their specification."""
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", _written_svg)
    monkeypatch.setattr(vl_convert, "vegalite_to_png", _written_png)


def _written_svg(spec: "str | dict[str, Any]", **_: object) -> str:
    """A picture with the digest of a specification and the texts of its titles."""
    found = json.loads(spec) if isinstance(spec, str) else spec
    digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    texts = "".join(f"<text>{html.escape(text)}</text>" for text in _titles(found))
    name = f'data-specification="{digest}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {name} viewBox="0 0 1 1">{texts}</svg>'


def _written_png(spec: "str | dict[str, Any]", **_: object) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + _written_svg(spec).encode()


def _titles(found: Any) -> Iterator[str]:
    """Every title and subtitle within a specification, but not within its data."""
    if isinstance(found, dict):
        for name, inner in found.items():
            if name in ("title", "text", "subtitle") and not isinstance(inner, dict):
                yield from filter(
                    None, map(str, inner if isinstance(inner, list) else [inner or ""])
                )
            elif name not in ("data", "datasets"):
                yield from _titles(inner)
    elif isinstance(found, list):
        for inner in found:
            yield from _titles(inner)
