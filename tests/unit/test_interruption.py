"""What a program makes of the signals that end it."""

import signal
import time
import weakref

import pytest

from sweeps.processes import gentle_interruption


class Fleeting:
    """An object that is destroyed at once."""


@pytest.mark.parametrize(
    ("number", "ends_as"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_the_second_signal_ends_a_program_also_while_an_object_is_destroyed(
    number: signal.Signals, ends_as: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    with gentle_interruption() as interruption:
        signal.raise_signal(number)
        assert interruption.signal == number
        held = [Fleeting()]
        remembered = weakref.ref(held[0], lambda _: signal.raise_signal(number))

        def work() -> None:
            held.clear()
            time.sleep(5)

        with pytest.raises(ends_as):
            work()
    assert remembered() is None
    assert "Traceback" not in capfd.readouterr().err


def test_what_else_goes_wrong_while_an_object_is_destroyed_is_still_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda lost: told.append(lost.exc_type))
    with gentle_interruption():
        fleeting = Fleeting()
        remembered = weakref.ref(fleeting, lambda _: 1 // 0)
        del fleeting
    assert remembered() is None
    assert told == [ZeroDivisionError]
