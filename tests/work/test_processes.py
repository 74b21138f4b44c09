"""What a process makes of the signals that end it."""

import signal
import time
import weakref

import pytest

from sweeps.processes import gentle_interruption


class Fleeting:
    """An object that is destroyed at once."""


ENDS_AS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}


@pytest.mark.parametrize("number", ENDS_AS)
def test_the_second_signal_ends_a_program_also_while_an_object_is_destroyed(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    with gentle_interruption() as interruption:
        signal.raise_signal(number)
        assert interruption.signal == number
        held = [Fleeting()]
        remembered = weakref.ref(held[0], lambda _: signal.raise_signal(number))

        def work() -> None:
            held.clear()
            time.sleep(300)

        with pytest.raises(ENDS_AS[number]):
            work()
    assert remembered() is None
    assert "Traceback" not in capfd.readouterr().err
