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
from seqcls.errors import describe_error
from sweeps.processes import collect_seldom, keep_freed_memory
from sweeps.work.executors import is_of_machine
from sweeps.work.executors.messages import READY, Channel, ClosedError, ProgressReporter
from sweeps.work.executors.pool import Answer
from sweeps.work.jobs import Job, run_job


def main(channel: Channel, progress: int) -> None:
    """Trains until the other end is gone."""
    _send(channel, READY)
    jobs: SimpleQueue[Job] = SimpleQueue()
    threading.Thread(target=_receive, args=(channel, jobs), daemon=True).start()
    while True:
        _send(channel, _answer(jobs.get(), progress))


def _send(channel: Channel, message: object) -> None:
    channel.put(message)
    try:
        channel.send()
    except ClosedError:
        os._exit(1)


def _receive(channel: Channel, jobs: "SimpleQueue[Job]") -> None:
    try:
        for job in channel.messages():
            jobs.put(job)
    finally:
        # The process that would take the results is gone.
        os._exit(1)


def _answer(job: Job, progress: int) -> Answer:
    try:
        return run_job(job, ProgressReporter(progress)), None, False
    except Exception as error:
        return [], describe_error(error), is_of_machine(error)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:4]]
    for number in numbers:
        os.set_inheritable(number, False)
    os.set_blocking(numbers[1], False)
    collect_seldom()
    keep_freed_memory()
    engine_named(sys.argv[4]).load()
    os.dup2(numbers[2], sys.stderr.fileno())
    main(Channel(socket.socket(fileno=numbers[0])), numbers[1])
