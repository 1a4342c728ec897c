"""What a person typed as an answer, read as it was meant. `answers.js` reads by the same rules.

Digits and signs may be of any width, commas Chinese, minus signs typographic. A number may be
worked out: `3/7`, `25%`, `2*(6+1)`, `√5`, `2^10`. A shape may be `(2, 3)`, `2x3` or `2 × 3`.
"""

from __future__ import annotations

import math
import re
import unicodedata

#: Longer texts are no answers.
LONGEST = 300
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SIGNS = str.maketrans("‐‑‒–—−÷∕⁄、。×·∙⋅•∗π√", "------///,.******p√")
_NUMBER = re.compile(r"(?a)(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|sqrt|ln|log|exp|[-+*/^()%√ep]")
_FUNCTIONS = {"√": math.sqrt, "sqrt": math.sqrt, "ln": math.log, "log": math.log, "exp": math.exp}


class UnreadError(ValueError):
    """The text has no meaning as an answer of its form."""


def plain(text: str) -> str:
    """The text with ordinary digits, signs and spaces, in small letters."""
    if len(text) > LONGEST:
        raise UnreadError
    text = re.sub(r"[⁻⁰¹²³⁴-⁹]+", lambda found: f"^({found[0].translate(_SUPERSCRIPTS)})", text)
    text = re.sub(r"(?a)(?<=\d)(?=[¼-¾⅐-⅞])", "+", text)  # two and a half
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS).lower().replace("**", "^")
    text = re.sub(r"(?a)^\s*(?:[a-z]\w*\s*)?[=≈~]|torch\.|tensor|size|[\u200b\ufeff'\"]", "", text)
    return re.sub(r"[^\S\n]+", " ", text).strip()


def _bare(text: str) -> str:
    """Without the brackets around all of it."""
    while re.match(r"[\[({].*[\])}]$", text, re.DOTALL):
        depth = 0
        for place, sign in enumerate(text):
            depth += (sign in "[({") - (sign in "])}")
            if depth == 0 and place < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return text.rstrip(",; ")


class _Sum:
    """An arithmetic expression, read from left to right."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"(?a)(?<=[\d)])\s*x\s*(?=[\d(√])", "*", text)
        self.tokens = _NUMBER.findall(text)
        if "".join(self.tokens) != text.replace(" ", "") or re.search(r"(?a)[\d.] [\d.]", text):
            raise UnreadError
        self.tokens.append("")

    def value(self) -> float:
        try:
            value = self.sum()
        except (ValueError, ArithmeticError):
            raise UnreadError from None
        if self.tokens != [""] or not math.isfinite(value):
            raise UnreadError
        return value

    def takes(self, *signs: str) -> str:
        return self.tokens.pop(0) if self.tokens[0] in signs else ""

    def sum(self) -> float:
        value = self.product()
        while sign := self.takes("+", "-"):
            value += self.product() * (1 if sign == "+" else -1)
        return value

    def product(self) -> float:
        value = self.signed()
        while sign := self.takes("*", "/") or (self.tokens[0] in ("√", "(") and "*"):
            factor = self.signed()
            value = value * factor if sign == "*" else value / factor
        return value

    def signed(self) -> float:
        if sign := self.takes("+", "-"):
            return self.signed() * (1 if sign == "+" else -1)
        base = self.single()
        if not self.takes("^"):
            return base
        value = base ** self.signed()
        if isinstance(value, complex):
            raise UnreadError
        return value

    def single(self) -> float:
        token = self.tokens.pop(0)
        if token in _FUNCTIONS:
            return _FUNCTIONS[token](self.single())
        if token == "(":
            value = self.sum()
            if not self.takes(")"):
                raise UnreadError
        elif token in ("e", "p"):
            value = math.e if token == "e" else math.pi
        elif re.match(r"(?a)[\d.]", token):
            value = float(token)
        else:
            raise UnreadError
        return value / 100 if self.takes("%") else value


def _list(text: str) -> list[float]:
    text = _bare(text)
    between = next((sign for sign in ";,\n" if sign in text), None)
    items = re.split(r"\s*" + between + r"\s*", text) if between else text.split(" ")
    return [_Sum(item.replace(",", ".")).value() for item in items]


def number(text: str, unit: str = "") -> float | list[float]:
    """One number, or several where there are several."""
    text = plain(text)
    if unit and text.endswith(unit.lower()):
        text = text.removesuffix(unit.lower()).strip()
    text = re.sub(r"(?a)(?<=\d)_(?=\d)", "", text)
    if re.fullmatch(r"(?a)[-+]?[1-9]\d{0,2}([, ])\d{3}(\1\d{3})*(\.\d+|)", text):
        text = re.sub("[, ]", "", text)  # thousands
    elif re.fullmatch(r"(?a)[-+]?\d+,\d+", text):
        text = text.replace(",", ".")
    try:
        return _Sum(_bare(text)).value()
    except UnreadError:
        several = _list(text)
        if len(several) == 1:
            raise
        return several


def numbers(text: str) -> list[float]:
    """Several numbers, with commas, semicolons, spaces or line ends between them."""
    return _list(plain(text))


def rows(text: str) -> list[list[float]] | list[float]:
    """Rows of numbers, one a line or each in brackets; a flat list where there is one row."""
    text = re.sub(r"[\])]\s*[,;]?\s*[\[(]", "\n", plain(text))
    text = re.sub(r"[\[\](){}]", "", text.replace(";", "\n")).strip(" ,\n")
    found = [_list(row.strip(" ,")) for row in re.split(r"\s*\n\s*", text)]
    if len({len(row) for row in found}) > 1:
        raise UnreadError
    return found if len(found) > 1 else found[0]


def shape(text: str, words: tuple[str, ...] = ()) -> tuple[int, ...] | str:
    """The sizes of a shape; or the first of `words`, where the text is one of them."""
    text = plain(text)
    if text.strip(".!() ") in words:
        return words[0]
    text = re.sub(r"[\[\](){}]", " ", text)
    sizes = re.split(r"\s*[,;x*\s]\s*", text.strip(" ,;\n"))
    if not all(re.fullmatch(r"(?a)-?\d{1,9}", size) for size in sizes):
        raise UnreadError
    return tuple(map(int, sizes))


def letters(text: str) -> str:
    """The subscripts of an einsum with the letters a, b, c … in the order in which they come."""
    text = unicodedata.normalize("NFKC", text[:LONGEST]).strip(" \n'\"").replace(" ", "")
    text = text.replace("→", "->").replace("、", ",").replace("...", "…")
    if not re.fullmatch(r"[a-zA-Z…]*,[a-zA-Z…]*->[a-zA-Z…]*", text):
        raise UnreadError
    known: dict[str, str] = {}
    for letter in re.findall(r"[a-zA-Z…]", text):
        known.setdefault(letter, chr(ord("a") + len(known)))
    return "".join(known.get(sign, sign) for sign in text)
