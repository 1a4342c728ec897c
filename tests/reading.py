"""How long a chapter takes to read, section by section, for the minutes that the pages name."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
#: A newcomer's pace, an estimate: words and lines of code per minute; minutes for an interactive
#: figure and for a displayed formula.
WORDS, LINES, FIGURE, FORMULA = 150, 8, 3, 1.5
FIGURES = re.compile(r"^(?:\w+Figure|AttentionLens|LiveTransformer|ShapeWalk)\(", re.M)
FOLDED = re.compile(r":::.*?^:::$|<details>.*?</details>|```.*?```|\$\$.*?\$\$", re.S | re.M)
NO_PROSE = re.compile(r"^(\|.*|#.*|\(.*\)=)$", re.M)
IMPORT = re.compile(r"^(?:import|from) .+?(?:\([^)]*\))?$", re.M)
ASIDE = ("Exercises", "Going deeper")
SIDE = re.compile(r"^#+ .+\n+\*Side step\.\*")


def cells_of(notebook: str) -> list[dict]:
    """The cells of a notebook, named without its suffix."""
    return json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]


def chapters() -> list[str]:
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))


def markdown(cells: list[dict]) -> str:
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def with_sections(cells: list[dict]) -> list[tuple[str, str, str, set[str]]]:
    """Section and subsection, source and tags of each piece of a notebook; the opening is ""."""
    found, section, part = [], "", ""
    for cell in cells:
        source, tags = "".join(cell["source"]), set(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code":
            found.append((section, part, source, tags | {"code"}))
            continue
        for piece in re.split(r"^(?=##+ )", source, flags=re.M):
            if heading := re.match(r"(##+) (.+)", piece):
                section, part = (heading[2], "") if heading[1] == "##" else (section, heading[2])
            found.append((section, part, piece, tags))
    return found


def figures_in(cells: list[dict]) -> set[str]:
    """The sections that contain an interactive figure."""
    return {
        name
        for name, _, source, tags in with_sections(cells)
        if "code" in tags and FIGURES.search(source)
    }


def minutes(cells: list[dict]) -> dict[str, float]:
    """For each section the minutes of a first reading: prose, displayed formulas, visible code and
    interactive figures.

    Exercises, what goes deeper, what is folded, imports and tables do not count.
    """
    found: dict[str, float] = defaultdict(float)
    for name, part, source, tags in with_sections(cells):
        if name.startswith(ASIDE) or part.startswith(ASIDE) or tags & {"remove-cell", "hide-cell"}:
            continue
        if "code" in tags:
            lines = [line for line in IMPORT.sub("", source).splitlines() if line.strip(" #")]
            found[name] += len(FIGURES.findall(source)) * FIGURE
            found[name] += 0 if tags & {"hide-input", "remove-input"} else len(lines) / LINES
        else:
            found[name] += len(NO_PROSE.sub("", FOLDED.sub("", source)).split()) / WORDS
            found[name] += source.count("$$") // 2 * FORMULA
    return found


def side_steps(cells: list[dict]) -> set[tuple[str, str]]:
    """The section and subsection of what is marked *Side step*; of a whole section, ""."""
    return {(name, part) for name, part, source, _ in with_sections(cells) if SIDE.match(source)}


def path_minutes(cells: list[dict]) -> dict[str, float]:
    """The same on the main path: sections and parts marked *Side step* do not count."""
    aside = side_steps(cells)
    rest = [
        {
            "cell_type": "code" if "code" in tags else "markdown",
            "source": source,
            "metadata": {"tags": [*tags - {"code"}]},
        }
        for name, part, source, tags in with_sections(cells)
        if not {(name, ""), (name, part)} & aside
    ]
    return minutes(rest)


def main_path(cells: list[dict]) -> float:
    """The minutes of a chapter without what is marked *Side step*."""
    return sum(path_minutes(cells).values())


def exercise_minutes(cells: list[dict]) -> int:
    """The minutes that the exercises name, added up."""
    return sum(map(int, re.findall(r"^\*(\d+) minutes · ", markdown(cells), re.M)))
