"""python -m attention_book.examine file.py:Name: examine in a process of its own.

The process is ended after 30 seconds, wherever it hangs. Exit code 0: right, notes allowed; 1:
mistakes; 2: not examined, or a wrong command.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import inspect
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import Any

from attention_book.examine.examination import KINDS, LAYOUTS, MEANINGS, examine
from attention_book.examine.report import CannotExamine, Note
from attention_book.examine.subject import Subject

#: What a class is given by the names of its arguments; the first that fits.
USUAL = {
    r"(n|num)?_?(attention|attn|q|query)?_?heads?|h|nh": 4,
    r"(n|num)?_?(kv|key_value|query)_?(heads?|groups?)": 2,
    r"d_?(head|[kvh])|(dim|size)_heads?|heads?_?(dim|size)": 8,
    r"(d|n|dim|size)?_?(d|dim|size|in|out|model|emb\w*|hidden|width|channels|features)": 32,
    r"(in|out|inner|model|emb\w*|hidden|input|output|query|key|value|context|kv|q|k|v)"
    r"_?(d|dim|size|channels|features)": 32,
    r"(\w+_)?(drop|dropout)(_?(p|prob|rate))?": 0.0,
    r"(\w+_)?bias": True,
    r"(n_|max_)?(block|ctx|context|seq|sequence|len|pos|positions?)\w*|max_\w*len\w*": 64,
    r"(n_|num_)?vocab\w*": 50,
    r"(n|num)?_?(layers?|blocks?)|depth": 2,
    r"(d|dim)_?(ff|feedforward|mlp|inner)|(ff|mlp|inter\w*)_?(dim|size)": 64,
}


def main(arguments: Sequence[str] | None = None, seconds: float = 30) -> int:
    """Examine what the arguments name, print the report, and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    asked = parser().parse_args(given)
    if asked.inside is not None:
        return inside(asked, seconds)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "attention_book.examine", *given, "--inside", str(answer)]
        quiet: dict[str, Any] = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": DEVNULL}
        child = Popen(command, start_new_session=True, **quiet)
        try:
            code = child.wait(seconds)
            reason = f"the process ended with code {code}"
        except TimeoutExpired:
            reason = f"not finished within {seconds:g} seconds"
        finally:  # and what it has started
            if os.name == "posix":
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
            child.kill()
            child.wait()
        try:
            told = json.loads(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            told = refusal(CannotExamine(reason))
    print(json.dumps(told["report"], ensure_ascii=False) if asked.json else told["text"])
    return int(told["code"])


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    made = argparse.ArgumentParser(prog="python -m attention_book.examine", description=__doc__)
    made.add_argument("subject", help="file.py:Name, a function, a module, or a class")
    made.add_argument("--kind", choices=KINDS)
    made.add_argument("--mask", choices=MEANINGS)
    made.add_argument("--layout", choices=LAYOUTS)
    made.add_argument("--allow", action="append", default=[], metavar="NAME")
    made.add_argument("--json", action="store_true")
    made.add_argument("--inside", help=argparse.SUPPRESS)
    return made


def inside(asked: argparse.Namespace, seconds: float) -> int:
    """The child's part: examine, and leave the answer in a file."""
    owner = os.getpid()
    try:
        options = {name: getattr(asked, name) for name in ("kind", "mask", "layout", "allow")}
        thing, said = usual(loaded(asked.subject))
        report = examine(thing, seconds=seconds, **options)
        report.notes += [Note("usual-values", said)] if said else []
        told = {"code": 0 if report.ok else 1, "text": repr(report), "report": report.to_dict()}
    except CannotExamine as error:
        told = refusal(error)
    if os.getpid() == owner:
        Path(asked.inside).write_text(json.dumps(told), encoding="utf-8")
    os._exit(0)  # threads that the subject has started do not matter


def refusal(error: CannotExamine) -> dict[str, Any]:
    """What is said of a subject that cannot be examined."""
    said = {"reason": error.reason, "tried": error.tried}
    return {"code": 2, "text": f"cannot be examined: {error}", "report": said}


def loaded(subject: str) -> Any:
    """The thing that file.py:Name names.

    Raises:
        CannotExamine: where there is no such file, it does not import, or has no such name.
    """
    path, _, name = subject.rpartition(":")
    if not path or not Path(path).is_file():
        raise CannotExamine(f"there is no file {path or subject!r}: write file.py:Name")
    spec = importlib.util.spec_from_file_location("subject", path)
    if spec is None or spec.loader is None:
        raise CannotExamine(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["subject"] = module
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}"
        raise CannotExamine(f"{path} does not import", [said]) from error
    if not hasattr(module, name):
        raise CannotExamine(f"{path} has no {name!r}")
    return getattr(module, name)


def usual(thing: Any) -> tuple[Any, str]:
    """A class made with small values for what it must be given, where all have usual names."""
    if not inspect.isclass(thing):
        return thing, ""
    with contextlib.suppress(CannotExamine, TypeError, ValueError):
        must = [p for p in inspect.signature(thing).parameters.values() if p.default is p.empty]
        names = [one.name for one in must if one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}]
        fits = {n: [v for p, v in USUAL.items() if re.fullmatch(p, n.lower())][:1] for n in names}
        if names and all(fits.values()):
            values = {name: value[0] for name, value in fits.items()}
            said = ", ".join(f"{name}={value}" for name, value in values.items())
            made = Subject.made(partial(thing, **values), thing.__name__)
            return made, f"Made as {thing.__name__}({said})."
    return thing, ""


if __name__ == "__main__":
    sys.exit(main())
