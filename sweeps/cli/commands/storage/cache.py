"""What the command does with what this machine keeps: show it, clear it."""

from sweeps.cli.commands.printing import print_json, print_table
from sweeps.terminal import say


def show_cache(clear: bool, as_json: bool) -> None:
    """Prints what is kept, after removing it all where that is wanted."""
    import pandas as pd

    from seqcls.caching import cache

    if clear:
        removed = cache.clear()
        say(f"{cache.cache_folder()}: {removed:,} bytes removed.", err=True)
    rows = [{"what": kind.name, "files": kind.files, "bytes": kind.size} for kind in cache.kept()]
    frame = pd.DataFrame(rows, columns=["what", "files", "bytes"])
    if as_json:
        print_json(frame)
    else:
        print_table(frame, f"kept in {cache.cache_folder()}")
