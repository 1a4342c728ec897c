"""What the cells of a notebook say, in another language: their code, and what it showed.

A message is a text of a code cell that readers see: what is printed, the title, the label and any
other words of a picture, a comment, a docstring. It is found by where it stands:

- in the arguments of `print` and of what writes into a picture (`TELLING`), and the keywords
  `SHOWN`, wherever they stand;
- elsewhere, but not as another keyword, if it has a space between words, or is one of the `NAMES`
  of its notebook: a key of a table, a name in a list.

A text without words, such as a formula, a name of the code or a number, is no message. Values are
{0}, {1} … A message is replaced wherever it stands in its notebook, so that a key is found again,
but not as another keyword's value.
The answers that `check` gets have names that it knows: in such cells only comments are messages.

What the cells showed when they ran so is stored beside the catalogues, where it is not the same as
in English. Nothing is run here.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import html
import io
import json
import re
import tokenize
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import nbformat
from editions import catalogues, translations
from nbformat import NotebookNode
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
ASSIGNMENTS = ROOT / "coursework" / "student"
#: How the cell begins that an assignment's checks need.
HELPERS = "# The helpers"
#: Whose arguments are printed, or drawn.
TELLING = {"print", "fill", "set_title", "set_xlabel", "set_ylabel", "suptitle", "text", "annotate"}
SHOWN = {"title", "label", "xlabel", "ylabel", "end"}
#: Other texts that are shown: names in lists and keys of tables, by notebook.
NAMES = {
    name: set(names.split("|"))
    for name, names in {
        "01_queries_keys_values": "wanted",
        "02_scoring_functions": "equal|longer|rotated|dot|distance|bilinear|additive",
        "03_masking": "causal|both|none|queries|keys",
        "04_batched_matmul": "error",
        "05_additive_attention": "additive|swapped",
        "06_scaled_dot_product": "module|fused|plain|scaled|additive|"
        "d_k                        4     64   1024",
        "07_multi_head": "columns|rows|saturated|, ",
        "08_self_attention_block": "nothing|residual|norm|feed-forward|self-attention|neither|"
        "pre-norm|post-norm|LayerNorm|, ",
        "09_three_uses": "encoder|causal|cross|cross-attention|memory|feed-forward",
        "10_fast_and_exact": "readable|fused|plain|lengths|causal|causal=True|, ",
        "11_language_model": "names|least|most|embedding|causal|nothing",
        "12_learned_english": "greedy|none|ε = 0.01|, |{0}: {1}",
        "museum": " or |, |-distance²|-distance|new|transposed|leaf|exp|product|restarted|with|"
        "without",
    }.items()
}
#: Words of examples, which stay as they are.
EXAMPLES = {
    "03_masking": "It rains the cat sat down pad",
    "04_batched_matmul": "keys",
    "09_three_uses": "start tab regal stream lager",
    "11_language_model": "bring tea rice queries keys values",
    "12_learned_english": "Lily Tim Timmy Tom Ben Max Sue Jack Lucy named",
}
#: What is no word, or the same in Chinese: names of methods, units, and words of the field.
KEPT = {
    *("softmax", "tanh", "LSTM", "LayerNorm", "PyTorch", "torch", "einsum", "float"),
    *("NaN", "MiB", "MB", "KiB", "ms", "rad", "ln", "log", "exp", "QK", "CPU", "GPU", "logit"),
    *("logits", "bfloat", "Linear", "peak_bytes", "True", "False"),
}
_PIECE = re.compile(
    r"(?P<kind>[fFrRbB]*)(?P<quote>\"\"\"|'''|\"|')(?P<body>(?:\\.|(?!(?P=quote)).)*)(?P=quote)",
    re.DOTALL,
)


def english(text: str) -> list[str]:
    """The English words of a text, without names of the code."""
    text = re.sub(
        r"\$[^$]*\$|\([\w*]+(?:, [\w*]+)+\)|\{\d*\}|`[^`]*`|https?:\S+|\S*->\S*", " ", text
    )
    found = re.findall(r"(?<![\w.\\])[A-Za-z]+[a-z](?![A-Za-z0-9_(]|[.=]\w)", text)
    return [word for word in found if word not in KEPT]


class Text(NamedTuple):
    """A text in the code of a cell: where it stands, its message, and what fills its places."""

    start: int
    end: int
    message: str
    fields: tuple[str, ...]
    quote: str
    shown: bool  # by where it stands
    is_code: bool  # and not a comment


def _fields(body: str) -> Iterator[tuple[str, bool]]:
    """The parts of an f-string, in turn text and what stands in its braces."""
    part, depth, at = "", 0, 0
    while at < len(body):
        sign = body[at]
        if not depth and body[at : at + 2] in ("{{", "}}"):
            at += 1
        elif sign == "{":
            if not depth:
                yield part, False
                part = ""
            depth += 1
        part += sign
        at += 1
        if sign == "}" and depth:
            depth -= 1
            if not depth:
                yield part, True
                part = ""
    yield part, False


def _texts_of(pieces: str) -> tuple[str, tuple[str, ...], str]:
    """The message of a literal, of one piece or several, the fields in it, and its quotes."""
    message, fields, quote = "", [], ""
    for piece in _PIECE.finditer(pieces):
        quote = piece["quote"]
        formatted = "f" in piece["kind"].lower()
        for part, is_field in _fields(piece["body"]) if formatted else [(piece["body"], False)]:
            if is_field:
                message += f"{{{len(fields)}}}"
                fields.append(part)
            else:
                message += ast.literal_eval(quote + part + quote)
    return message, tuple(fields), quote


@cache
def texts(source: str) -> list[Text]:
    """Every text and comment of a cell, in order."""
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    found: list[Text] = []

    def at(line: int, column: int | None) -> int:  # the parser counts bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def add(node: ast.expr, *, shown: bool, is_code: bool = True) -> None:
        start, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
        message, fields, quote = _texts_of(source[start:end])
        message = message if is_code else " ".join(message.split())
        found.append(Text(start, end, message, fields, quote, shown, is_code))

    def visit(node: ast.AST, *, shown: bool = False, spaced: bool = True) -> None:
        match node:
            case ast.JoinedStr() | ast.Constant(value=str()):
                add(node, shown=shown or (spaced and " " in _texts_of_node(node, source)))
            case ast.Expr(value=ast.Constant(value=str()) as docstring):
                add(docstring, shown=True, is_code=False)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                name = getattr(function, "attr", getattr(function, "id", ""))
                visit(function, shown=shown, spaced=spaced)
                for argument in arguments:
                    visit(argument, shown=shown or name in TELLING, spaced=spaced)
                for word in keywords:
                    if word.arg in SHOWN or not isinstance(word.value, ast.Constant):
                        visit(word.value, shown=word.arg in SHOWN, spaced=False)
            case ast.Subscript(value=ast.Name(id="DIMENSIONS")):
                pass
            case ast.Subscript(value=value, slice=key):
                visit(value, shown=shown, spaced=spaced)
                visit(key)
            case _:
                for child in ast.iter_child_nodes(node):
                    visit(child, shown=shown, spaced=spaced)

    visit(ast.parse(source))
    before = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        start = starts[token.start[0] - 1] + token.start[1]
        comment = Text(
            start, start + len(token.string), token.string.lstrip("# "), (), "#", True, False
        )
        alone = not token.line[: token.start[1]].strip()
        if alone and before and before == (token.start[0] - 1, token.start[1]):  # it goes on
            last = found.pop()
            message = f"{last.message} {comment.message}"
            comment = last._replace(end=comment.end, message=message)
        before = token.start if alone else None
        found.append(comment)
    return sorted(found)


def _texts_of_node(node: ast.expr, source: str) -> str:
    return _texts_of(ast.get_source_segment(source, node) or "")[0].strip()


def _is_answered(source: str) -> bool:
    return re.search(r"^check\(", source, re.MULTILINE) is not None


def messages_of(notebook: NotebookNode, name: str) -> Iterator[tuple[str, str]]:
    """Each message of a notebook, with the cell in which it stands."""
    names = NAMES.get(name, set())
    for cell in notebook.cells:
        if cell.cell_type != "code" or "remove-cell" in cell.metadata.get("tags", []):
            continue
        for text in texts(cell.source):
            if text.is_code and _is_answered(cell.source):
                continue
            if (text.shown and english(text.message)) or text.message in names:
                yield cell.id, text.message
            for field in text.fields:
                for inner in _PIECE.finditer(field):
                    word = inner["body"]
                    shown = (field[: inner.start()] == "{" or " " in word) and english(word)
                    if shown or word in names:
                        yield cell.id, word


def cell_messages() -> Iterator[tuple[Path, str]]:
    """What the cells of all notebooks say, and docstrings and comments of the assignments, of whose
    helpers only the first line: each has a catalogue of its own."""
    for path in sorted(ASSIGNMENTS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            found = texts(cell.source) if cell.cell_type == "code" else []
            for text in found[:1] if cell.source.startswith(HELPERS) else found:
                if not text.is_code and english(text.message):
                    yield path, text.message
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for _, message in messages_of(nbformat.read(path, as_version=4), path.stem):
            yield path, message


# --- In the other language ----------------------------------------------------------------------


def in_language(source: str, words: Mapping[str, str], *, comments: bool = True) -> str:
    """The code of a cell with the messages of its notebook in another language.

    Without `comments`, these are empty: they change nothing that the cell shows.
    """
    made, end = [], 0
    for text in texts(source):
        answered = text.is_code and _is_answered(source)
        said = words.get(text.message, "")
        if not text.is_code and not comments:
            said = " "
        inner = any(piece["body"] in words for f in text.fields for piece in _PIECE.finditer(f))
        if (said or inner) and not answered:
            column = text.start - source.rfind("\n", 0, text.start) - 1
            made += [source[end : text.start], _written(text, said, words, column)]
            end = text.end
    return "".join([*made, source[end:]])


def _written(text: Text, said: str, words: Mapping[str, str], column: int) -> str:
    """A text as Python: a comment, a docstring, a string with its fields."""
    if text.quote == "#":
        return f"\n{' ' * column}".join(f"# {line}" for line in _lines(said, 74 - column))
    if not text.is_code:
        return f"{text.quote}{said}{text.quote}"

    def inner(piece: re.Match[str]) -> str:
        return piece["quote"] + words.get(piece["body"], piece["body"]) + piece["quote"]

    parts = []
    for number, part in enumerate(re.split(r"\{(\d+)\}", said or text.message)):
        if number % 2:
            parts.append(_PIECE.sub(inner, text.fields[int(part)]))
        else:
            part = part.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
            part = part.replace(text.quote, f"\\{text.quote}")
            parts.append(re.sub(r"[{}]", r"\g<0>\g<0>", part) if text.fields else part)
    return f"{'f' if text.fields else ''}{text.quote}{''.join(parts)}{text.quote}"


def width(text: str) -> int:
    """How many columns a line takes where a Chinese character takes two."""
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def _lines(said: str, room: int) -> list[str]:
    """A comment in lines: Chinese may break anywhere but before a sign that ends something."""
    lines = [""]
    for piece in re.findall(r"(?:[!-~]+|.)[，。；：、）”]*", said):
        if width(lines[-1] + piece) > room:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return lines


def outputs_file(name: str, language: str) -> Path:
    return catalogues(language).parent / "outputs" / f"{name}.json"


def words_of(notebook: NotebookNode, name: str, language: str) -> dict[str, str]:
    """The translations of a notebook's messages."""
    known = translations(language, f"cells/{name}")
    return {text: known[text] for _, text in messages_of(notebook, name) if text in known}


def assignment(notebook: NotebookNode, name: str, language: str) -> NotebookNode:
    """An assignment with its docstrings and comments in another language."""
    words, made = translations(language, f"cells/{name}"), nbformat.from_dict(notebook)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.source = in_language(cell.source, words)
    return made


def digest(source: str, words: Mapping[str, str]) -> str:
    """Of the code that makes an output in another language."""
    return hashlib.sha256(in_language(source, words, comments=False).encode()).hexdigest()[:12]


def spoken(
    notebook: NotebookNode, name: str, language: str, *, to_run: bool = False
) -> NotebookNode:
    """A notebook with its code, and what this showed, in another language.

    One that has never run in it stays as it is, so that code and outputs agree, but `to_run`.
    """
    file = outputs_file(name, language)
    if language == "en" or not (to_run or file.exists()):
        return notebook
    made = nbformat.from_dict(notebook)
    words = words_of(made, name, language)
    stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for cell in made.cells:
        if cell.cell_type == "code":
            if cell.id in stored:
                cell.outputs = nbformat.from_dict(stored[cell.id]["outputs"])
            cell.source = in_language(cell.source, words)
    return made


# --- What is wrong ------------------------------------------------------------------------------


def _seen(outputs: list[NotebookNode]) -> tuple[str, list[str], str]:
    """What a reader reads in some outputs: what cells print and draw, English words of figures'
    still pictures, and the rest, in which names of tensors and dimensions are code."""
    written, pictured, seen = [], [], []
    for output in outputs:
        data = output.get("data", {})
        page = "".join(data.get("text/html", ""))
        drawn = re.search(r'src="data:image/svg\+xml,([^"]+)"', page)
        if "text" in output:
            written.append(output["text"])
        elif "image/png" in data:
            with Image.open(io.BytesIO(base64.b64decode(data["image/png"]))) as picture:
                written.append(str(picture.info.get("Words", "")))
        elif drawn:
            texts_drawn = re.findall(r"<text\b.*?</text>", unquote(drawn[1]), re.DOTALL)
            lines = [html.unescape(re.sub("<[^>]*>", "", text)) for text in texts_drawn]
            state = page.partition("<script")[2]  # the data: letters, names, a story
            pictured += [line for line in lines if len(english(line)) > 1 and line not in state]
            seen += lines
        else:
            seen.append(re.sub("<[^>]*>", " ", page) or data.get("text/plain", ""))
    return "\n".join(written), pictured, "\n".join(seen)


def _numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d+(?:[.,]\d+)*", text))


def faults(notebook: NotebookNode, name: str, language: str) -> Iterator[str]:
    """What a notebook lacks in another language, each with its cell: a picture, the words of an
    output, the same numbers as in English, outputs of its cells as they are now."""
    words, file = words_of(notebook, name, language), outputs_file(name, language)
    stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    cells = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and "remove-cell" not in cell.metadata.get("tags", [])
    ]
    kept = {*EXAMPLES.get(name, "").split()}
    untold = {
        part.strip()
        for cell in cells
        for text in (() if _is_answered(cell.source) else texts(cell.source))
        if text.is_code and text.message not in words
        for part in re.split(r"\{\d+\}", text.message)
        if {*english(part)} - kept
    }
    english_texts = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, untold))})(?![\w-])")
    again = f"run make notebooks ONLY={name}"
    for cell in cells:
        place = f"notebooks/{name}.ipynb, cell {cell.id}"
        made = stored.get(cell.id)
        if made is None and any("image/png" in o.get("data", {}) for o in cell.outputs):
            yield f"{place}: its picture is not drawn in {language}: {again}"
        if made and made["source"] != digest(cell.source, words):
            yield f"{place}: changed since it ran in {language}: {again}"
        outputs = nbformat.from_dict(made["outputs"]) if made else cell.outputs
        said, pictured, _ = _seen(outputs)
        if pictured:
            yield f"{place}: its still picture says “{pictured[0]}” in English"
        for number, line in enumerate(said.splitlines(), 1):
            if untold and (left := english_texts.search(line)):
                yield f"{place}, line {number}: “{left[0]}” is English in “{line.strip()}”"
        is_drawn = any("image/png" in output.get("data", {}) for output in outputs)
        here, there = (_numbers("".join(_seen(shown)[::2])) for shown in (outputs, cell.outputs))
        if not is_drawn and here != there:
            differ = ", ".join([*(here - there), *(there - here)])
            yield f"{place}: shows other numbers than in English: {differ}"
