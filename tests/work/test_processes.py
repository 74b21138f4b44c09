"""What a process makes of memory that is free, and of the signals that end it."""

import platform
import resource
import signal
import subprocess
import sys
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


MADE_AGAIN = """
import ctypes, resource, sys
from sweeps.processes import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
c = ctypes.CDLL(None)
c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
for again in range(10):
    several = [c.malloc(20 << 20) for _ in range(4)]
    for memory in several:
        ctypes.memset(memory, 1, 20 << 20)
    for memory in several:
        c.free(memory)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's memory alone")
def test_memory_that_is_free_is_used_again_without_the_system() -> None:
    kept, returned = (
        int(subprocess.check_output([sys.executable, "-c", MADE_AGAIN, way], text=True))
        for way in ("kept", "returned")
    )
    pages = (20 << 20) // resource.getpagesize()
    assert returned - kept > 20 * pages
