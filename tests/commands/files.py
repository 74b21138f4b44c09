"""Files that people have, written for a test."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.torch import save_file

Content: TypeAlias = Any
"""Text, bytes, a table of Arrow or of pandas, tensors by name, or an object for JSON."""


def written(folder: Path, name: str, content: Content) -> Path:
    """The path of a file with this content, in the format of its name's suffix."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix[1:]
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    elif isinstance(content, pd.DataFrame):
        how = {"csv": {"index": False}, "parquet": {"index": False}}
        lines = {"orient": "records", "lines": ending == "jsonl"}
        write = content.to_json if ending.startswith("json") else getattr(content, f"to_{ending}")
        write(path, **how.get(ending, lines))
    elif ending == "safetensors" and isinstance(content, Mapping):
        save_file({**content}, path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_bytes(content.encode())
    else:
        lines_of = map(json.dumps, content) if ending == "jsonl" else [json.dumps(content)]
        path.write_text("\n".join(lines_of))
    return path


def folder_of(folder: Path, files: Mapping[str, Content]) -> Path:
    """The folder, with these files."""
    for name, content in files.items():
        written(folder, name, content)
    return folder


def table(heading: str, rows: Iterable[Iterable[Any]]) -> str:
    """The text of a CSV file."""
    return "\n".join([heading, *(",".join(map(str, row)) for row in rows)])
