"""Workers in processes of their own whose database gets into trouble."""

import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from seqcls.errors import SeqclsError, StoreUnavailableError
from tests.chaos.swept import sweep


def sweep_in_trouble(path: Path, trouble: Callable[[], None]) -> str:
    """Sweeps in a fork of this process after `trouble` was called there.

    Returns:
        Empty if all went well; the message if the database could not be used; else a traceback.
    """
    # A fork: trouble may be that the process is somebody who may not even read the program.
    context = get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_sweep, args=(path, trouble, sending))
    child.start()
    sending.close()
    message: str = receiving.recv() if receiving.poll(300) else "no answer in 300 s"
    child.join()
    return message


def _sweep(path: Path, trouble: Callable[[], None], sending: Connection) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        trouble()
        sweep(path, "small")
        message = ""
    except StoreUnavailableError as error:
        message = str(error)
    except (SeqclsError, Exception):
        message = traceback.format_exc()
    sending.send(message)
    sending.close()
    os._exit(0)
