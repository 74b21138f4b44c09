"""What a process of tests has timed, it times once: to start what times takes two seconds.

Loaded before what imports `time_groups`.
"""

from functools import cache

from sweeps.work.timing import process

timed = cache(process.time_groups)
process.time_groups = lambda groups: timed(tuple(groups))
