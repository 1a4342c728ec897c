"""Exercises that a reader answers in the page, hints before a solution, and what was done.

A cell that ends with `check("1.3", …)` and stands open is an exercise. Where its answer needs no
Python, a form takes the cell's place; where it does, the form below the cell asks about it. The
form holds what `attention_book.exercises` declares, translated, and answers.js judges by that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from declared import declared, named
from docutils import nodes
from editions import N_, translations
from figures_ext import every_figure
from sphinx.application import Sphinx
from sphinx.locale import _

from attention_book.exercises import checker
from attention_book.exercises.checker import Exercise, Part

#: How much an exercise matters; of one in the middle nothing is said.
IMPORTANCE = {3: N_("Do this one."), 1: N_("If there is time.")}
EXTENSIONS = Path(__file__).parent
#: A figure in a stored notebook: its kind, and what it holds.
FIGURE = re.compile(r'<attention-figure kind=\\?"(\w+)(.*?)</attention-figure>', re.DOTALL)
SCRIPTS = ("answers.js", "progress.js")
#: What the scripts say.
WORDS = (
    *(N_("Right."), N_("Not right."), N_("{0} of {1}")),
    N_("Forget everything that you have answered and predicted in this book?"),
)
#: What answers.js says with the check's own words.
CHECKED = (
    *("one number", "{0} numbers", "a list of one number", "a tensor of shape {0}"),
    *("Expected {0}, but got {1}.", "{0}: {1}"),
    "PyTorch refuses these letters for tensors of the shapes {0} and {1}. Each tensor needs three "
    "letters, and axes that share a letter must have the same size.",
)


def marked(text: str) -> str:
    """A sentence as HTML, where `code` stands between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def as_data(exercise: Exercise, say: Callable[[str], str]) -> dict[str, Any]:
    """What the page needs to judge an answer, in the reader's language."""
    return {
        "why": say(exercise.why),
        "parts": [_part_data(part, say) for part in exercise.parts],
    }


def _part_data(part: Part, say: Callable[[str], str]) -> dict[str, Any]:
    is_choice = part.kind in ("choice", "line")
    place = part.options.index if is_choice else (lambda value: value)
    return {
        "kind": part.kind,
        "name": part.name,
        "right": place(part.right),
        "mistakes": [(place(wrong), _filled(why, say)) for wrong, why in part.mistakes.items()],
        "otherwise": say(part.otherwise),
        "tolerance": part.tolerance,
        "unit": part.unit,
        "words": part.words,
        "shapes": part.options if part.kind == "letters" else (),
        "form": checker.form(part, say),
    }


def _filled(sentence: str | tuple[Any, ...], say: Callable[[str], str]) -> str:
    if isinstance(sentence, str):
        return say(sentence)
    return say(sentence[0]).format(*sentence[1:])


def _field(part: Part, index: int, exercise: Exercise, say: Callable[[str], str]) -> str:
    label = marked(say(part.label or part.name) if part.label or part.name else _("Your answer"))
    name = f'name="part-{index}"'
    if part.kind in ("choice", "line"):
        tag = "code" if part.kind == "line" else "span"
        options = "".join(
            f'<label><input type="radio" {name} value="{at}"> '
            f"<{tag}>{escape(say(text))}</{tag}></label>"
            for at, text in enumerate(map(checker.option_text, part.options))
        )
        legend = marked(say(exercise.question)) if exercise.question else label
        kind = "lines" if exercise.question else "words"
        return f'<fieldset class="{kind}"><legend>{legend}</legend>{options}</fieldset>'
    typing = 'autocomplete="off" autocapitalize="off" spellcheck="false"'
    if part.kind == "rows":
        field = f'<textarea {name} rows="{len(part.right)}" {typing}></textarea>'
    else:
        field = f'<input type="text" {name} {typing}>'
    unit = f" <span>{escape(say(part.unit))}</span>" if part.unit else ""
    return f"<label><span>{label}</span> {field}{unit}</label>"


def form_of(exercise: Exercise, say: Callable[[str], str]) -> str:
    """The form in which an exercise is answered, or nothing where the page cannot judge it."""
    if not exercise.parts:
        return ""
    fields = "".join(
        _field(part, index, exercise, say) for index, part in enumerate(exercise.parts)
    )
    data = json.dumps(as_data(exercise, say), ensure_ascii=False, separators=(",", ":"))
    data = data.replace("</", "<\\/")
    without, submit = _("This page checks an answer with a script."), _("Check")
    return (
        f'<form class="exercise" data-exercise="{exercise.name}">{fields}'
        f'<button type="submit">{submit}</button>'
        f'<p role="status"></p><noscript>{without}</noscript>'
        f'<script type="application/json">{data}</script></form>'
    )


def hints_of(exercise: Exercise, say: Callable[[str], str]) -> str:
    importance = IMPORTANCE.get(exercise.importance)
    weight = f'<span class="importance">{_(importance)}</span>' if importance else ""
    title = _("Hint {number}")
    return weight + "".join(
        f'<details class="hint"><summary>{title.format(number=number)}</summary>'
        f"<p>{marked(say(hint))}</p></details>"
        for number, hint in enumerate(exercise.hints, 1)
    )


def _raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def _run_it(app: Sphinx) -> str:
    page = app.env.docname
    up = "../" * page.count("/")
    this = _("download this chapter")
    download = f'<a href="{up}_sources/{page}.ipynb" download>{this}</a>'
    lab = f'<a href="{app.builder.get_relative_uri(page, "book/anywhere")}">JupyterLab</a>'
    words = _(
        "To have your own code checked, open this chapter in {lab}, or {download} and run it."
    )
    return f'<p class="run-it">{words.format(lab=lab, download=download)}</p>'


def _ask_in_page(app: Sphinx, doctree: nodes.document) -> None:
    """Give each exercise its form and its hints, and take away what only a kernel can answer."""
    if app.builder.format != "html":
        return
    words = translations(app.config.language, "exercises")
    cells = [
        (node, name)
        for node in list(doctree.findall(nodes.container))
        if node.get("nb_element") == "cell_code" and node.get("hide_mode") != "all"
        if (name := named(node.children[0].astext()))
    ]
    for node, name in cells:
        exercise = declared(name)
        assert exercise is not None, f"exercise {name} has no declaration"

        def say(text: str) -> str:
            return words.get(text, text)

        is_code = exercise.question or not exercise.parts
        below = form_of(exercise, say) + hints_of(exercise, say)
        asked = _raw(
            f'<div class="exercise-box onscreen">{below}{_run_it(app) if is_code else ""}</div>'
        )
        if is_code:
            del node.children[1:]
            node.parent.insert(node.parent.index(node) + 1, asked)
        else:
            node.replace_self(asked)
    if cells:
        _add_line(doctree, app.env.docname)


def _add_line(doctree: nodes.document, page: str) -> None:
    """Say above the first exercise how many of the chapter's things are done."""
    form = next((raw for raw in doctree.findall(nodes.raw) if "exercise-box" in raw.astext()), None)
    assert form is not None
    section = form.parent
    while not isinstance(section, nodes.section):
        section = section.parent
    total = len(to_do().get(page, ()))
    so_far, forgetting = _("{0} of {1}"), _("Forget it")
    count = f"<span>{so_far.format(0, total)}</span>"
    line = _("Done in this chapter: {count}, figures included. Only this browser remembers it.")
    forget = f'<button type="button" hidden>{forgetting}</button>'
    words = f'<p class="progress-line onscreen">{line.format(count=count)} {forget}</p>'
    section.parent.insert(section.parent.index(section), _raw(words))


def to_do() -> dict[str, list[str]]:
    """What a reader can do on each page, by name: exercises, predictions, challenges."""
    modules = {figure.kind: figure.module() for figure in every_figure()}
    found: dict[str, list[str]] = {}
    for path in sorted((EXTENSIONS.parents[1] / "notebooks").glob("[0-9]*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        asked = dict.fromkeys(filter(None, (named(cell.source) for cell in cells)))
        items = [name for name in asked if (known := declared(name)) and known.parts]
        seen: list[str] = []
        for kind, state in FIGURE.findall(path.read_text("utf-8")):
            seen.append(kind)
            if re.search(r'asks\\?":false', state):  # it is shown again, without its question
                continue
            figure_name = kind if seen.count(kind) == 1 else f"{kind}-{seen.count(kind)}"
            for what, option in (("prediction", "question"), ("challenge", "challenge")):
                if re.search(rf"\b{option}:", modules[kind]):
                    items.append(f"{what} {figure_name}")
        if items:
            found[f"notebooks/{path.stem}"] = items
    return found


def _write_scripts(app: Sphinx) -> None:
    """Write the scripts before the pages, whose links contain their checksums."""
    if app.builder.format != "html":
        return
    words = translations(app.config.language, "exercises")
    said = {text: words[text] for text in CHECKED if text in words}
    said |= {text: _(text) for text in WORDS if _(text) != text}
    needs = {
        "answers.js": ("attentionAnswers", {"words": said}),
        "progress.js": ("attentionProgress", {"pages": to_do(), "words": said}),
    }
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    for script, (name, data) in needs.items():
        code = (EXTENSIONS / script).read_text(encoding="utf-8")
        head = f"const {name} = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"
        (folder / script).write_text(head + code, encoding="utf-8")


def _add_scripts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    app.add_js_file("progress.js", loading_method="defer")
    if '<form class="exercise"' in context.get("body", ""):
        app.add_js_file("answers.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _write_scripts)
    app.connect("doctree-read", _ask_in_page, priority=600)  # after the solutions are folded
    app.connect("html-page-context", _add_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
