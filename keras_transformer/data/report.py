"""What became of the lines of a corpus."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

# Causes for which a pair is left out, and how the report words them.
CAUSES = {
    "invalid_utf8": "not valid UTF-8",
    "nul": "with a NUL character",
    "columns": "with too few columns",
    "blank": "blank on both sides",
    "one_sided_blank": "blank on one side",
    "too_long": "over the limit of bytes",
    "duplicate": "that stand earlier already",
}


@dataclasses.dataclass
class DataReport:
    """Counts of the pairs read, kept, and left out by cause, and the first places of each cause.

    Attributes:
        read: Pairs read.
        kept: Pairs handed on.
        dropped: Pairs left out, by cause.
        places: Up to three places of each cause, `FILE:LINE`.
    """

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    places: dict[str, list[str]] = dataclasses.field(default_factory=lambda: {cause: [] for cause in CAUSES})

    def drop(self, cause: str, place: str) -> None:
        """Counts one pair left out."""
        self.dropped[cause] += 1
        if len(self.places[cause]) < 3:
            self.places[cause].append(place)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the report as JSON."""
        Path(path).write_text(json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False), encoding="utf-8")

    def __str__(self) -> str:
        lines = [f"{self.kept:,} of {self.read:,} pairs kept"]
        for cause, count in self.dropped.items():
            if count:
                share = 100 * count / self.read
                lines.append(f"  {count:,} ({share:.1f} %) {CAUSES[cause]}, first at {', '.join(self.places[cause])}")
        return "\n".join(lines)
