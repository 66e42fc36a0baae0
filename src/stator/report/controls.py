"""The page `docs/guide/controls.md`: `python -m stator.report.controls > docs/guide/controls.md`."""

from __future__ import annotations

from stator.controls.page import COMPILER_TEXT, CONTROLS, DYNAMO_TEXT
from stator.controls.table import COMPILER, DYNAMO, Options

__all__ = ["page"]


def page() -> str:
    """The page as Markdown."""
    controls = [f"| {row.name} | {row.does} | `{row.test}` |" for row in CONTROLS]
    return "\n".join(
        [
            *[DYNAMO_TEXT, *_rows(DYNAMO), COMPILER_TEXT, *_rows(COMPILER)],
            *["", "## The other controls", "", "| control | under Stator | its test |", "|---|---|---|", *controls],
        ]
    )


def _rows(options: Options) -> list[str]:
    return ["| option | in Stator |", "|---|---|", *[f"| `{name}` | {row} |" for name, row in sorted(options.items())]]


if __name__ == "__main__":
    print(page())
