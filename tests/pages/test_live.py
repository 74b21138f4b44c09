"""What is answered while a string is typed: the model's own numbers, within bounds."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dashboard.live.route import MOST_TOKENS, look
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import Message, Scope

from dashboard.live import route
from dashboard.server import visitors
from dashboard.server.serving import OwnPages
from seqcls.interpretability.states_by_strings import attention_patterns
from sweeps.api.models import trained_model
from sweeps.store.opening import open_reader
from tests.conftest import ROOT
from tests.inside import ADDITIVE, BLOCKS, LSTM, STREAMS, WRITING

SHIPPED = str(ROOT / "runs.db")
WRITTEN = "Probability of each token that it writes"


HOST = "127.0.0.1:8501"


@dataclass(frozen=True)
class Answer:
    """What the server answers."""

    status: int
    body: bytes

    @property
    def found(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Client:
    """Asks the server's application itself."""

    app = Starlette(routes=route.ROUTES, middleware=[Middleware(OwnPages)])

    def post(self, question: Any, origin: str | None = None) -> Answer:
        headers = [(b"host", HOST.encode())]
        headers += [(b"origin", origin.encode())] if origin else []
        scope: Scope = {
            "type": "http", "method": "POST", "path": "/live", "query_string": b"",
            "headers": headers, "client": ("127.0.0.1", 1),
        }  # fmt: skip
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": json.dumps(question).encode()}

        async def send(message: Message) -> None:
            sent.append(message)

        # In a thread of its own: where a browser was driven before, this one has a loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(self.app(scope, receive, send))).result()
        return Answer(sent[0]["status"], b"".join(x.get("body", b"") for x in sent[1:]))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("SEQCLS_DB", SHIPPED)
    return Client()


def asked(client: Client, **question: Any) -> dict[str, Any]:
    return client.post(question).found


def test_the_logit_after_each_prefix_and_every_head_are_those_of_the_model(inside: Path) -> None:
    model = trained_model(open_reader(str(inside)), int(BLOCKS))
    found = look(model, "0110")
    line = found["line"]
    assert line is not None
    assert line["tokens"] == ["", "0", "1", "1", "0"]
    for end, value in enumerate(line["values"]):
        assert value == pytest.approx(model.answer(model.letters("0110"[:end])).logit, abs=1e-3)
    patterns = attention_patterns(model, model.letters("0110")).weights
    shown = [np.array(each["cells"]).reshape(5, 5) / 1_000 for each in found["maps"]]
    np.testing.assert_allclose(shown, patterns.reshape(-1, 5, 5), atol=6e-4)
    assert f"(logit {line['values'][-1]:.4f})" in found["said"]


@pytest.mark.parametrize(
    ("run", "string", "line", "maps", "name", "columns"),
    [
        (LSTM, "0110", "Running logit", 1, "Layer 0, units", ""),
        (WRITING, "ab", WRITTEN, 4, "Block 0, head 0", "ab"),
        (STREAMS, "abca", WRITTEN, 4, "Cross-attention, block 0, head 0", "abca"),
        (ADDITIVE, "abca", WRITTEN, 1, "Cross-attention, block 0, head 0", "abca"),
    ],
)
def test_what_a_model_has_of_its_own_follows_what_is_typed(
    inside: Path, run: str, string: str, line: str, maps: int, name: str, columns: str
) -> None:
    found = look(trained_model(open_reader(str(inside)), int(run)), string)
    assert found["line"] is not None
    assert found["line"]["name"] == line
    if line == WRITTEN:
        assert all(0 <= (share or 0) <= 1 for share in found["line"]["values"])
    assert len(found["maps"]) == maps
    assert found["maps"][0]["name"] == name
    for each in found["maps"]:
        assert len(each["cells"]) == len(each["rows"]) * len(each["columns"])
        assert each["columns"][: len(columns) + 1] == ["CLS", *columns] or not columns


def test_of_a_long_string_the_logit_is_shown_and_why_nothing_else(client: Client) -> None:
    found = asked(client, run=5, string="ab{99}")
    assert len(found["line"]["values"]) == 101
    assert found["maps"] == []
    assert "drawn up to 64 tokens" in found["absent"][0]
    found = asked(client, run=5, string="a{500}")
    assert f"up to {MOST_TOKENS} are answered" in found["error"]


def test_epochs_differ_and_the_best_is_answered_where_none_is_named(client: Client) -> None:
    untrained, second, best = (
        asked(client, run=5, epoch=epoch, string="baac")["line"]["values"] for epoch in (0, 2, None)
    )
    assert untrained != second == best


@pytest.mark.parametrize(
    ("question", "status", "says"),
    [
        ({"run": 5, "string": "xy"}, 422, "unknown letter 'x'"),
        ({"run": 999, "string": "a"}, 422, "no run '999'"),
        ({"run": 5, "epoch": 77, "string": "a"}, 422, "77"),
        ({"run": "5", "string": "a"}, 400, "cannot be read: expected"),
        ({"run": True, "string": "a"}, 400, "cannot be read"),
        ({"string": "a"}, 400, "cannot be read"),
        ([], 400, "cannot be read"),
        ({"run": 5, "string": "a" * 9_000}, 400, "more than 8,192 bytes"),
    ],
)
def test_a_bad_question_gets_a_line(client: Client, question: Any, status: int, says: str) -> None:
    answer = client.post(question)
    assert answer.status == status
    assert says in answer.found["error"]
    assert "\n" not in answer.found["error"]


def test_pages_of_other_servers_are_not_answered(client: Client) -> None:
    question = {"run": 5, "string": "a"}
    assert client.post(question, "http://127.0.0.1:9").status == 403
    assert client.post(question, f"http://{HOST}").status == 200


def test_visitors_of_a_read_only_page_are_answered_one_at_a_time(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"run": 5, "string": "ab"}
    monkeypatch.setattr(visitors, "WAIT_SECONDS", 0.1)
    for reads_only, status in (("", 200), ("1", 503)):
        monkeypatch.setenv("SEQCLS_READ_ONLY", reads_only)
        with visitors.one_question():
            answer = client.post(question)
        assert answer.status == status
    assert "The server answers others" in answer.found["error"]
    assert client.post(question).status == 200
