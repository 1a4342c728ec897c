"""Keep the translations in locale/ in step with the pages, and say where they are not.

Without an argument the catalogues are brought up to date: new messages are added, changed ones
marked fuzzy beside their old translation, gone ones dropped. A message that is fuzzy or has no
translation is open; the file `open` beside the catalogues says how many are. With --check nothing
is written; what fails is a catalogue that is not up to date, another number of open messages than
that file says, a translation that has lost or changed a formula, a role, a link, a piece of code,
a number or an emphasis, and one that Sphinx would not take for one paragraph. The package carries
the words of the exercises' checks in a file of its own, and the course those of its feedback, which
are written and checked with the rest.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import PoFileError, denormalize, read_po, write_po
from book import build, build_decks

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from editions import catalogues  # noqa: E402
from messages_ext import drawing, marked  # noqa: E402
from translated import PARSER  # noqa: E402

LANGUAGE = "zh_CN"
CATALOGUES = catalogues(LANGUAGE)
#: How many messages wait for a translation: 0, unless the English is being changed.
OPEN = CATALOGUES.parent / "open"
#: What programs say without a catalogue at hand: the package, which brings its file along, and the
#: grader, which looks for it in a course.
SAID = {
    "exercises": ROOT / "src" / "attention_book" / f"{LANGUAGE}.json",
    "feedback": ROOT / "coursework" / "languages" / f"{LANGUAGE}.json",
}
#: The head of each catalogue. Without dates, so that two branches do not differ in them.
HEADER = rf"""msgid ""
msgstr ""
"Language: {LANGUAGE}\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=1; plural=0;\n"

"""
#: One line for a message: a wrapped line would be taken for another comment.
LONGEST = 1_000_000
#: Catalogues whose messages are not Markdown, but text with values in braces.
PLAIN = {"figures", "sphinx", "exercises", "feedback", "cells"}


def extract() -> dict[str, Catalog]:
    """The messages of each page, in the order of the page."""
    with tempfile.TemporaryDirectory() as folder:
        templates, decks = Path(folder) / "pot", Path(folder) / "decks"
        if build("en", templates, "gettext") or build_decks("en", decks, "gettext"):
            sys.exit("The messages could not be taken from the pages: see the warnings above.")
        return {
            path.relative_to(decks if decks in path.parents else templates)
            .with_suffix("")
            .as_posix(): read(path)
            for path in sorted([*templates.rglob("*.pot"), *decks.glob("slides/*.pot")])
        }


def catalogues_stored() -> dict[str, Catalog]:
    return {
        path.relative_to(CATALOGUES).with_suffix("").as_posix(): read(path)
        for path in sorted(CATALOGUES.rglob("*.po"))
    }


def read(path: Path) -> Catalog:
    """A catalogue; what a message was before it changed is kept only while it is fuzzy.

    Raises:
        SystemExit: for a file that is not one, with its line.
    """
    try:
        with path.open("rb") as file:
            catalogue = read_po(file, abort_invalid=True)
    except PoFileError as error:
        sys.exit(f"{path}, line {error.lineno}: {error}: {error.line.strip()}")
    for message in catalogue:
        # Babel takes the line of an earlier message, "#| …", for a comment.
        earlier = [c for c in message.user_comments if c.startswith('| msgid "')]
        message.user_comments = []
        if message.fuzzy and earlier:
            message.previous_id = [denormalize(earlier[0].removeprefix("| msgid "))]
    return catalogue


def messages(catalogue: Catalog | None) -> dict[str, str]:
    """Each message with its translation; one that is fuzzy counts as not translated."""
    found = (message for message in catalogue or () if message.id)
    return {str(m.id): "" if m.fuzzy else str(m.string) for m in found}


def marks(text: str) -> tuple[str, Counter[str], Counter[str]]:
    """What kind of block a text is; its marks, which a translation must repeat; its numbers."""
    tokens = PARSER.parse(text)
    kind = "+".join(token.type for token in tokens if token.level == 0 and token.nesting >= 0)
    found: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for token in tokens:
        for part in token.children or ():
            if part.type == "text":
                numbers.update(re.findall(r"\d+(?:[.,]\d+)*", part.content))
                if re.search(r"[*`$]", part.content):
                    found[f"a loose sign in “{part.content[:12]}”"] += 1
            elif part.type == "link_open":
                found[f"link {part.attrs['href']}"] += 1
            elif part.type == "myst_role":
                found[f"{{{part.meta['name']}}}`{part.content}`"] += 1
            elif part.type in ("strong_open", "em_open"):
                found[part.type.removesuffix("_open")] += 1
            elif part.type.startswith(("math", "code")):
                found[f"{part.type} {part.content}"] += 1
            elif part.type not in ("link_close", "strong_close", "em_close", "softbreak"):
                found[part.type] += 1
    return kind, found, numbers


def faults(message: str, translation: str, *, markdown: bool) -> Iterator[str]:
    """What is wrong with a translation, each in words that follow "the translation"."""
    if not markdown:
        names = [Counter(re.findall(r"\{\w*\}", text)) for text in (message, translation)]
        if names[0] != names[1]:
            yield f"has the values {sorted(names[1])}, not {sorted(names[0])}"
        return
    (_, wanted, numbers), (kind, found, others) = marks(message), marks(translation)
    if kind != "paragraph_open":
        yield f"is not one paragraph but {kind or 'nothing'}: Sphinx would drop it"
    if lost := wanted - found:
        yield "lacks " + ", ".join(sorted(lost.elements()))
    if new := found - wanted:
        yield "has on top " + ", ".join(sorted(new.elements()))
    if lost := numbers - others:
        yield "lacks the numbers " + ", ".join(sorted(lost.elements()))


def said(catalogue: str) -> str:
    """The finished translations of a catalogue, one on each line. The package draws still pictures,
    too, with words that their figures' scripts also have."""
    stored = messages(read(CATALOGUES / f"{catalogue}.po"))
    if catalogue == "exercises":
        figures = messages(read(CATALOGUES / "figures.po"))
        shared = {text for path in drawing() for _, _, text in marked(path, "N_")}
        stored = {text: figures[text] for text in figures if text in shared} | stored
    finished = {old: new for old, new in stored.items() if new}
    return json.dumps(finished, ensure_ascii=False, indent=0, sort_keys=True) + "\n"


def check() -> int:
    """Print every problem and say how many there are; 1 where there is one."""
    problems = []
    templates, stored = extract(), catalogues_stored()
    for page in sorted({*templates, *stored}):
        wanted, have = messages(templates.get(page)), messages(stored.get(page))
        if wanted.keys() != have.keys():
            new, gone = len(wanted.keys() - have.keys()), len(have.keys() - wanted.keys())
            problems.append(f"{page}: {new} messages are new and {gone} gone: run make messages")
        for message, translation in have.items():
            found = faults(message, translation, markdown=page.split("/")[0] not in PLAIN)
            for fault in found if translation else ():
                problems.append(f"{page}: “{message[:60]}”: the translation {fault}")
    for catalogue, path in SAID.items():
        if path.read_text(encoding="utf-8") != said(catalogue):
            problems.append(f"{path}: not in step with its catalogue: run make messages")
    if int(OPEN.read_text()) != (number := len(waiting(stored))):
        problems.append(
            f"{number} messages are open, not {OPEN.read_text().strip()}: make messages"
        )
    number = sum(len(messages(catalogue)) for catalogue in stored.values())
    print(*problems, f"{len(problems)} problems in {number} messages", sep="\n")
    return int(bool(problems))


def waiting(stored: dict[str, Catalog]) -> list[tuple[str, str]]:
    """The open messages, each with its catalogue: they are shown in English."""
    return [
        (page, message)
        for page, catalogue in stored.items()
        for message, translation in messages(catalogue).items()
        if not translation
    ]


def update() -> int:
    """Merge the pages' messages into the catalogues; a fuzzy one keeps what it was beside it.

    A catalogue has the order of its page and no date, so that it changes only where a page does.
    """
    templates = extract()
    for page, template in templates.items():
        path = CATALOGUES / f"{page}.po"
        catalogue = read(path) if path.exists() else Catalog(locale=LANGUAGE)
        known = messages(catalogue).keys()
        catalogue.update(template)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(HEADER.encode())
            options = {"omit_header": True, "ignore_obsolete": True, "include_previous": True}
            write_po(file, catalogue, width=LONGEST, **options)
        if differ := len(known ^ messages(catalogue).keys()):
            print(f"{page}: {differ} messages differ")
    for path in set(CATALOGUES.rglob("*.po")) - {CATALOGUES / f"{page}.po" for page in templates}:
        path.unlink()
    OPEN.write_text(f"{len(waiting(catalogues_stored()))}\n")
    for catalogue, path in SAID.items():
        path.write_text(said(catalogue), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(check() if "--check" in sys.argv[1:] else update())
