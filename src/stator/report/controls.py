"""The page `docs/controls.md`: `python -m stator.report.controls > docs/controls.md`."""

from __future__ import annotations

from stator.controls.page import CONTROLS, TEXT
from stator.controls.table import HONOURED, IRRELEVANT, WARNED, meaning

__all__ = ["page"]


def page() -> str:
    """The page as Markdown."""
    options = [f"| `{name}` | {meaning(name)} |" for name in sorted({*HONOURED, *WARNED, *IRRELEVANT})]
    controls = [f"| {row.name} | {row.does} | `{row.test}` |" for row in CONTROLS]
    return "\n".join(
        [
            *[TEXT + "| option | in Stator |", "|---|---|", *options],
            *["", "## The other controls", "", "| control | under Stator | its test |", "|---|---|---|", *controls],
        ]
    )


if __name__ == "__main__":
    print(page())
