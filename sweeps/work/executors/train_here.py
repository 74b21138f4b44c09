"""What a training process does: `python -m sweeps.work.executors.train_here`, with four arguments:
SOCKET PIPE ERRORS ENGINE.

It says that it is ready once all it needs is imported; from then on its standard error is that of
the process that started it. It trains the groups that come through the socket, one after another,
answers each, and reports progress and losses through the pipe. It ends with the process at the
other end, however that one ends.
"""

import os
import socket
import sys
import threading
from queue import SimpleQueue

from seqcls.engines.choice import engine_named
from seqcls.errors import named
from sweeps.processes import collect_seldom
from sweeps.work.executors import is_of_machine
from sweeps.work.executors.messages import Inbox, ProgressReporter, packed
from sweeps.work.executors.pool import CHUNK_BYTES, READY, Answer
from sweeps.work.jobs import Job, run_job


def main(channel: socket.socket, progress: int) -> None:
    """Trains until the other end is gone."""
    try:
        channel.sendall(packed(READY))
    except OSError:
        os._exit(1)
    jobs: SimpleQueue[Job] = SimpleQueue()
    threading.Thread(target=_receive, args=(channel, jobs), daemon=True).start()
    while True:
        answer = _packed_answer(jobs.get(), progress)
        try:
            channel.sendall(answer)
        except OSError:
            os._exit(1)


def _receive(channel: socket.socket, jobs: "SimpleQueue[Job]") -> None:
    inbox = Inbox()
    try:
        while piece := channel.recv(CHUNK_BYTES):
            inbox.add(piece)
            while (job := inbox.next()) is not None:
                jobs.put(job)
    finally:
        # The process that would take the results is gone.
        os._exit(1)


def _packed_answer(job: Job, progress: int) -> bytes:
    try:
        answer: Answer = (run_job(job, ProgressReporter(progress)), None, False)
    except Exception as error:
        answer = ([], named(error), is_of_machine(error))
    return packed(answer)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:4]]
    for number in numbers:
        os.set_inheritable(number, False)
    os.set_blocking(numbers[1], False)
    collect_seldom()
    engine_named(sys.argv[4]).load()
    os.dup2(numbers[2], sys.stderr.fileno())
    main(socket.socket(fileno=numbers[0]), numbers[1])
