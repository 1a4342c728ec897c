"""An assignment as its source notebook states it: questions, answers asked for, tests, points.

Otter reads the source format and its test files run the tests. What is added here are stand-ins
for the answers: one that records the calls the tests make, one that replays a student's results.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import torch
from otter.assign.assignment import Assignment as OtterAssignment
from otter.assign.notebook_transformer import NotebookTransformer
from otter.assign.solutions import strip_solutions_and_output
from otter.assign.tests_manager import AssignmentTestsManager
from otter.test_files import GradingResults
from otter.test_files.metadata_test import NotebookMetadataExceptionTestFile

from . import course, mistakes
from . import source as sources
from .marks import QuestionMark
from .text import sentence, told
from .wire import MalformedError, Opaque, decode, encode, tensors

#: What came back of a call: its `value` or an `error`, and what was `changed`; None if nothing did.
Reply = dict[str, Any] | None
#: The names that the source notebooks give to the tests beside the answers.
SEED, GRADIENT = "seed", "gradient_of"


class WrongTestsError(Exception):
    """The assignment itself is at fault: its tests and its solutions do not agree."""


class NoResultError(Exception):
    """What a test sees in place of a result, where the student's function gave none."""


class QuestionTests(NotebookMetadataExceptionTestFile):
    """Otter's test file, whose messages tell the finding alone and never show a test's source."""

    def _generate_error_message(self, excp: Exception, context: int = 0) -> str:
        if isinstance(excp, AssertionError | NoResultError):
            return sentence(excp) or told("the function stopped at an assertion of its own")
        what = f"{type(excp).__name__}: {excp}"
        return sentence(told(f"the result cannot be used: {what}"))


@dataclass(frozen=True)
class Question:
    """One question: the names it asks for and its tests, hidden ones included."""

    name: str
    title: str
    answers: tuple[str, ...]
    source: str
    digest: str  #: of the tests and of all that they read

    def tests(self) -> QuestionTests:
        return QuestionTests.from_metadata(self.source, path=self.name)


@dataclass(frozen=True)
class Assignment:
    """A source notebook, read."""

    name: str
    title: str
    questions: tuple[Question, ...]
    #: What running the source notebook defines: helpers, given code and the reference answers.
    names: dict[str, Any]
    reference_cells: tuple[str, ...]
    digest: str
    manual: tuple[QuestionMark, ...]  #: questions that no test marks
    given: tuple[str, ...]  #: the code that the student's notebook holds already

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(name for question in self.questions for name in question.answers)

    @property
    def possible(self) -> float:
        return sum(question.tests().possible for question in self.questions)

    def run(self, seed: int, stand_ins: dict[str, Any]) -> GradingResults:
        """Run every test with the answers replaced by `stand_ins`."""
        # A tensor that the notebook itself holds is every run's own: an answer may write into it.
        own = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in self.names.items()}
        environment = {**own, SEED: seed, **stand_ins}
        files = [question.tests() for question in self.questions]
        for tests in files:
            tests.run(environment)
        return GradingResults(files)

    def record(self, seed: int) -> list[dict[str, Any]]:
        """The calls that the tests make with this seed, in order, none twice.

        Raises:
            WrongTestsError: where the reference solution does not pass them.
        """
        calls: dict[str, dict[str, Any]] = {}

        def note(call: dict[str, Any]) -> None:
            calls.setdefault(_key(call), call)

        def gradient_of(recorder: _Recorder, *args: Any) -> Any:
            for mode in ("gradient", "slope"):
                note(_call(mode, recorder.name, args))
            return self.names[GRADIENT](recorder.function, *args)

        stand_ins: dict[str, Any] = {GRADIENT: gradient_of}
        for name in self.answers:
            answer = self.names[name]
            if callable(answer):
                stand_ins[name] = _Recorder(name, answer, note)
            else:
                note(_call("value", name))
        results = self.run(seed, stand_ins)
        if results.total != results.possible:
            raise WrongTestsError(f"{self.name}: the reference solution fails\n{results.summary()}")
        return list(calls.values())

    def grade(
        self, seed: int, calls: list[dict[str, Any]], replies: Iterable[Reply]
    ) -> GradingResults:
        """Run the tests on what came back from the jail, for the calls recorded with this seed.

        Where the student's functions wrote into their inputs, the tests run once without the
        writing and once with it, and one passes only where it passes both times. So nothing is
        gained by writing, whatever a test computes from its inputs afterwards, and a test that
        looks for writing still finds it.
        """
        by_key = {_key(call): reply for call, reply in zip(calls, replies, strict=True)}
        results = self.run(seed, self._stand_ins(by_key, _Replayed))
        if any(reply and reply.get("changed") for reply in by_key.values()):
            written = self.run(seed, self._stand_ins(by_key, _ReplayedWithWriting))
            for name, tests in results.results.items():
                second = written.results[name].test_case_results
                pairs = zip(tests.test_case_results, second, strict=True)
                tests.test_case_results = [two if one.passed else one for one, two in pairs]
        return results

    def _stand_ins(self, replies: dict[str, Reply], replayed: type[_Replayed]) -> dict[str, Any]:
        stand_ins: dict[str, Any] = {GRADIENT: _replayed_gradient}
        for name in self.answers:
            if callable(self.names[name]):
                stand_ins[name] = replayed(name, replies)
            else:
                reply = replies[_key(_call("value", name))]
                stand_ins[name] = _value(reply) if reply and "value" in reply else None
        return stand_ins


def names() -> list[str]:
    """Every assignment there is."""
    return sorted(path.stem for path in course.sources().glob("*.ipynb"))


def load(name: str) -> Assignment:
    """Read an assignment's source notebook and run its solutions.

    Raises:
        FileNotFoundError: where there is none of that name.
    """
    known = names()
    if not known:
        raise FileNotFoundError(
            f"There are no assignments in {course.sources()}: say with --course where the course is"
        )
    if name not in known:
        raise FileNotFoundError(f"No assignment {name!r}; there are {', '.join(known)}")
    return read(course.sources() / f"{name}.ipynb")


def read(path: Path) -> Assignment:
    source = nbformat.read(path, as_version=4)
    otter = OtterAssignment(require_valid_keys=True)
    otter.master, otter.lang = path, "python"
    manager = AssignmentTestsManager(otter)
    container = NotebookTransformer(otter, manager).transform_notebook(source)
    manager.write_tests(container.nbmeta_config, "", include_hidden=True)
    space = types.ModuleType(path.stem).__dict__
    space["print"] = lambda *anything: None  # the helpers speak to students, not to the grader
    cells = _code(container.transformed_nb)
    for number, cell in enumerate(cells, 1):
        code = compile(cell, f"{path.name}, code cell {number}", "exec", dont_inherit=True)
        exec(code, space)
    asked = sources.questions(source)
    tests_of = container.nbmeta_config.tests
    beside = {question: _beside(path.stem, question) for question in tests_of}
    digests = sources.digests(source, tests_of, beside)
    return Assignment(
        name=path.stem,
        title=otter.name or path.stem,
        questions=tuple(
            Question(name, asked[name].title, asked[name].answers, tests, digests[name])
            for name, tests in tests_of.items()
        ),
        names=space,
        reference_cells=cells,
        digest=hashlib.sha256(f"{path.read_text('utf-8')} {digests}".encode()).hexdigest(),
        manual=sources.manual(source),
        given=course.handed_out(path.stem)
        or _code(strip_solutions_and_output(otter, container.transformed_nb)),
    )


def _code(notebook: nbformat.NotebookNode) -> tuple[str, ...]:
    """The code cells but for those that only call otter's checks."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return tuple(cell for cell in cells if "grader" not in cell)


def _beside(name: str, question: str) -> str:
    """What decides the marks of a question, or what is said of them, besides the notebook."""
    solutions = mistakes.of_question(f"{name}/{question}")
    held = [(one.name, one.sentence, one.code) for one in solutions]
    how = Path(mistakes.__file__).read_text(encoding="utf-8")
    return json.dumps([course.forbidden(name).get(question, []), how, held])


def _call(mode: str, name: str, args: tuple = (), kwargs: dict | None = None) -> dict[str, Any]:
    return {"mode": mode, "name": name, "args": encode(list(args)), "kwargs": encode(kwargs or {})}


def _key(call: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()


@dataclass(eq=False)
class _Recorder:
    name: str
    function: Callable
    note: Callable[[dict], None]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.note(_call("call", self.name, args, kwargs))
        return self.function(*args, **kwargs)


def result_in(name: str, reply: Reply) -> Any:
    """What a student's function gave back.

    Raises:
        NoResultError: where it gave nothing; the message says why.
    """
    if reply is None:
        raise NoResultError(f"{name} was not run")
    if "value" not in reply:
        raise NoResultError(f"{name} gave no result: {reply.get('error')}")
    return decode(reply["value"])


@dataclass(eq=False)
class _Replayed:
    """Answers a test's call with what the student's function returned for the same inputs."""

    name: str
    replies: dict[str, Reply]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return result_in(self.name, self.reply("call", args, kwargs))

    def reply(self, mode: str, args: tuple, kwargs: dict[str, Any]) -> Reply:
        try:
            return self.replies[_key(_call(mode, self.name, args, kwargs))]
        except KeyError:
            # Nobody chooses a test's inputs but the test, and what its functions write into them.
            raise NoResultError(
                "an earlier call of your code changed the inputs, "
                f"so {self.name} was not checked on them"
            ) from None


class _ReplayedWithWriting(_Replayed):
    """Also writes into the test's arguments what the student's function wrote into its own."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        reply = self.reply("call", args, kwargs)
        result = result_in(self.name, reply)
        given = list(tensors([*args, *kwargs.values()]))
        for number, raw in reply.get("changed", ()):
            mine = given[number]
            name = str(mine.dtype).removeprefix("torch.")
            mine.data = decode({"tensor": [name, list(mine.shape), raw]})
        return result


def _replayed_gradient(function: _Replayed, inputs: torch.Tensor, *others: Any) -> Any:
    """In place of the tests' own gradient: what autograd gave in the jail."""
    gradient, slope = (
        result_in(function.name, function.reply(mode, (inputs, *others), {}))
        for mode in ("gradient", "slope")
    )
    if not _agree(inputs, gradient, slope):
        raise NoResultError(
            f"the gradient of {function.name} does not agree with how its result changes when all "
            "inputs grow by one factor"
        )
    return gradient


def _agree(inputs: torch.Tensor, gradient: Any, slope: Any) -> bool:
    """Whether a gradient and the derivative by a factor of all inputs may be of one function.

    NaN somewhere in the first is NaN in the second. So where a notebook has changed autograd to
    hide it, one of them is found out: nothing but the right number is right in both. What is no
    gradient at all, or holds NaN openly, is for the test to judge.
    """
    if not isinstance(gradient, torch.Tensor) or gradient.shape != inputs.shape:
        return True
    if not gradient.isfinite().all():
        return True
    if not isinstance(slope, torch.Tensor) or slope.shape != ():
        return False
    parts = inputs.double() * gradient.double()
    bound = torch.finfo(inputs.dtype).eps ** 0.5 * (1 + parts.abs().sum())
    return bool((slope.double() - parts.sum()).abs() <= bound)


def _value(reply: dict[str, Any]) -> Any:
    try:
        value = decode(reply["value"])
    except (MalformedError, RecursionError):
        return None
    return None if isinstance(value, Opaque) else value
