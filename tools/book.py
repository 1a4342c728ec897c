"""Build both editions of the book and their slides into _build/html; a warning is an error.

From nothing, because a page that was built before does not repeat its warnings, and a page that is
gone from the contents would stay. The editions that were packed or printed stay: they are files.
Each edition has a process of its own, because Sphinx keeps one language per process.

PyTorch is not needed and not used: outputs are stored, and the API page comes from docstrings. An
empty stand-in takes its place, also where it is installed, so that the book is the same everywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from alone import alone

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "_build"
#: Where each language is built. The second then becomes a folder of the first.
EDITIONS = {"en": BUILT / "html", "zh_CN": BUILT / "zh" / "html"}
STAND_INS = ["torch", "safetensors"]
#: What of reveal.js a deck loads, and the licence.
REVEAL = ("dist/reveal.js", "dist/reveal.css", "plugin/notes/notes.js", "LICENSE")


def clear(built: Path) -> None:
    for folder in built.glob("*/"):
        shutil.rmtree(folder)


def build(language: str, folder: Path, builder: str = "html") -> int:
    """What `jupyter-book build` does, with a language, for which it has no option; 0 if it went
    well. It runs in this process, where PyTorch has a stand-in.
    """
    from jupyter_book.sphinx import build_sphinx
    from sphinx.ext.autodoc.mock import mock

    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    with mock(STAND_INS):
        result = build_sphinx(
            ROOT,
            folder,
            noconfig=True,
            path_config=ROOT / "_config.yml",
            confoverrides={
                "language": language,
                "external_toc_path": str(ROOT / "_toc.yml"),
                "latex_individualpages": False,
            },
            builder=builder,
            warningiserror=True,
            keep_going=True,
            quiet=True,
        )
    return int(bool(result))


def build_decks(language: str, folder: Path, builder: str = "revealjs") -> int:
    """Build the decks of slides, which are a Sphinx project of their own, into `folder`."""
    from sphinx.application import Sphinx
    from sphinx.ext.autodoc.mock import mock
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    sys.path.insert(0, str(ROOT / "src"))
    with mock(STAND_INS), patch_docutils(ROOT), docutils_namespace():
        app = Sphinx(
            ROOT,
            ROOT / "slides",
            folder,
            folder / ".doctrees",
            builder,
            confoverrides={"language": language},
            status=None,
            warningiserror=True,
            keep_going=True,
        )
        app.build()
    return app.statuscode


def add_decks(built: Path, book: Path) -> None:
    """Put the decks into their edition, whose style sheets and figures they share."""
    shutil.copytree(built / "slides", book / "slides")
    shutil.copytree(built / "_images", book / "_images", dirs_exist_ok=True)
    reveal = book / "_static" / "revealjs"
    reveal.mkdir()
    for file in REVEAL:
        shutil.copy(built / "_static" / "revealjs" / file, reveal)


def build_edition(language: str) -> int:
    """The pages of an edition, and its decks."""
    decks = BUILT / "decks" / language
    failed = build(language, EDITIONS[language]) or build_decks(language, decks)
    if not failed:
        add_decks(decks, EDITIONS[language])
    return failed


def main() -> int:
    with alone(BUILT / ".lock", "building the book"):
        clear(BUILT)
        commands = [[sys.executable, __file__, language] for language in EDITIONS]
        builds = [subprocess.Popen(command) for command in commands]
        if any([build.wait() for build in builds]):
            print("The book was not built: each WARNING above names its page and line.")
            return 1
        EDITIONS["zh_CN"].rename(EDITIONS["en"] / "zh")
    print(f"The book is built. Open {(EDITIONS['en'] / 'index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(build_edition(sys.argv[1]) if sys.argv[1:] else main())
