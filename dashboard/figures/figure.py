"""A figure: a drawing with its number, its name and how to read it."""

from typing import Any, NamedTuple

from dashboard.section import Panel, Spec


class Figure(NamedTuple):
    """One drawing; several of one number are parts of one figure: a head or a string each."""

    number: int | None
    """Its place among a one-block model's figures; of any other model they have none."""
    title: str
    part: str
    note: str
    spec: Spec
    """A Vega-Lite dictionary whose colors are names."""

    @classmethod
    def from_chart(
        cls, number: int | None, title: str, part: str, note: str, chart: Any
    ) -> "Figure":
        """A figure of a chart as Altair builds it."""
        return cls(number, title, part, note, Panel.of(chart).spec)

    @property
    def name(self) -> str:
        """The title, and which part it is."""
        return f"{self.title}: {self.part}" if self.part else self.title

    @property
    def file_name(self) -> str:
        """A name for files: `05_keys_and_queries_head_0`."""
        # Two digits, so that files sort as figures do.
        number = "" if self.number is None else f"{self.number:02}"
        words = f"{number} {self.title} {self.part}".lower()
        return "_".join("".join(x if x.isalnum() else " " for x in words).split())
