"""Functions that a question forbids: refused where they run, whatever they are called by.

`shortcuts.txt` has ways to call one, `by_hand.txt` lawful ways to come near it: for each answer
what stands before it in the notebook, if anything, and its body.
"""

from __future__ import annotations

import time
from pathlib import Path

import nbformat
import pytest
import torch
import torch.nn.functional as F

from walled_grader import assignment as assignments
from walled_grader import course, jail, shortcuts, wire

RULES = course.forbidden("3_multi_head_and_block")
FIRST = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"


def _read(name: str) -> dict[str, tuple[str, str]]:
    found = {}
    for part in f"\n{Path(__file__).with_name(name).read_text('utf-8')}".split("\n=== ")[1:]:
        answer, _, code = part.strip().partition("\n")
        before, _, body = code.rpartition("\n---\n")
        found[answer] = before, body
    return found


TRICKS, LAWFUL = _read("shortcuts.txt"), _read("by_hand.txt")


def _inputs(seed: int, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


#: For each kind of answer its parameters, its inputs, its right result, and what is forbidden.
X, WEIGHT, BIAS = _inputs(1, (2, 3, 7), (7,), (7,))
Q, K, V = _inputs(2, (2, 3, 4), (2, 5, 4), (2, 5, 4))
KINDS = {
    "norm": (
        "x, weight, bias, eps",
        [X, WEIGHT, BIAS, 1e-5],
        F.layer_norm(X, (7,), WEIGHT, BIAS, 1e-5),
        RULES["q3"],
    ),
    "attend": ("q, k, v", [Q, K, V], F.scaled_dot_product_attention(Q, K, V), RULES["q2"]),
}


def _answered(answers: dict[str, tuple[str, str]]) -> dict[str, tuple[dict, bool]]:
    """For each answer of a notebook that has them all: the reply, and whether it is right."""
    # The import lets the jail load, once for all, what many of these calls would load anew.
    cells, calls = [f"{FIRST}\nimport torch.utils.checkpoint"], []
    for name, (before, body) in answers.items():
        parameters, inputs, _, forbidden = KINDS[name.partition("_")[0]]
        indented = "\n".join("    " + line for line in body.strip().splitlines())
        cells += [before, f"def {name}({parameters}):\n{indented}"]
        sent = {"args": wire.encode(inputs), "kwargs": wire.encode({})}
        calls.append({"mode": "call", "name": name, **sent, "forbidden": forbidden})
    calls.sort(key=lambda call: call["forbidden"])  # a loader for each list, not for each change
    limits = jail.Limits(later_seconds=10, total_seconds=500, loading_seconds=200)
    lines = jail.run({"cells": cells, "calls": calls}, limits)
    found = {}
    for line in lines:
        if "call" in line:
            name, reply = calls[line["call"]]["name"], line["reply"]
            right = KINDS[name.partition("_")[0]][2]
            got = wire.decode(reply["value"]) if "value" in reply else None
            is_right = isinstance(got, torch.Tensor) and got.shape == right.shape
            found[name] = reply, is_right and torch.allclose(got.float(), right, atol=2e-4)
    return found


@pytest.fixture(scope="module")
def tricks() -> dict[str, tuple[dict, bool]]:
    return _answered(TRICKS)


@pytest.fixture(scope="module")
def lawful() -> dict[str, tuple[dict, bool]]:
    return _answered(LAWFUL)


@pytest.mark.parametrize("name", TRICKS)
def test_a_shortcut_is_refused_or_waits_for_a_person(tricks, name: str) -> None:
    reply, is_right = tricks[name]
    assert "used" in reply or not is_right, reply


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("norm_plain", "layer_norm"),
        ("norm_legit", "_native_batch_norm_legit"),
        ("norm_thread_refs", "native_layer_norm"),
        ("norm_setprofile_back", "sys.setprofile"),
        ("norm_local_response", "local_response_norm"),
        ("norm_cross_map_lrn", "CrossMapLRN2d.forward"),
        ("norm_weight_norm", "_weight_norm"),
        ("norm_normalize", "normalize"),
        ("norm_marshal", "marshal.loads"),
        ("norm_deep_backward", "a backward pass inside of many others"),
        ("attend_path_with_two_slashes", "exec"),
        ("norm_renorm", "renorm"),
        ("norm_name_of_a_file", "native_layer_norm"),
        ("attend_mha_forward", "multi_head_attention_forward"),
        ("attend_onnx", "attention"),
        ("norm_grad_in_scripts", "a backward pass in TorchScript"),
        ("norm_wraps_scripted", "normalize"),
        ("norm_cffi", "a module that calls what it likes"),
        ("norm_written_extension", "a module that was written"),
        ("norm_timeit_of_a_source", "a function defined in a text"),
    ],
)
def test_what_was_called_is_told_and_the_points_without_the_rule_are_known(
    tricks, name: str, used: str
) -> None:
    reply, is_right = tricks[name]
    assert (reply["used"], is_right) == ([used], True)


@pytest.mark.parametrize("name", LAWFUL)
def test_who_writes_by_hand_loses_nothing(lawful, name: str) -> None:
    reply, is_right = lawful[name]
    assert is_right, reply
    assert "used" not in reply


def test_too_slow_where_functions_refuse_is_told_apart_from_refused() -> None:
    late = "import sys, time\nwhile sys.getprofile():\n    time.sleep(0.1)\nreturn q"
    cell = f"{FIRST}\ndef attend(q, k, v):\n" + "\n".join(f"    {x}" for x in late.splitlines())
    sent = {"args": wire.encode([Q, K, V]), "kwargs": wire.encode({}), "forbidden": RULES["q2"]}
    calls = [{"mode": "call", "name": "attend", **sent}]
    *_, line = jail.run({"cells": [cell], "calls": calls}, jail.Limits(seconds=1))
    assert (line["reply"]["used"], line["reply"]["slow"]) == ([], True)


def test_nothing_is_left_of_where_functions_may_be_called() -> None:
    looks = """
import os, sys
frame = sys._getframe()
while "memory" not in frame.f_locals:
    frame = frame.f_back
room = frame.f_locals["memory"]
found = str((any(room[:]), os.listdir("/tmp")))
def attend(): return found
"""
    leaves = """
room[-1:] = b"x"
os.chdir("/tmp")
os.makedirs("a/b/c")
open("a/b/c/d", "w").close()
os.chmod("a/b", 0)
os.chmod("a", 0)
"""
    sent = {"args": wire.encode([]), "kwargs": wire.encode({}), "forbidden": RULES["q2"]}
    calls = [{"mode": "call", "name": "attend", **sent}]
    # What is mounted there is seen in a jail that nobody wrote into, too.
    fresh, left = (
        [*jail.run({"cells": cells, "calls": calls}, jail.Limits())][-1]["reply"]["value"]
        for cells in ([looks], [looks, leaves])
    )
    assert left == fresh
    assert left.startswith("(False, ")


def test_what_checkpoint_imports_takes_no_calls_time() -> None:
    cell = "import sys, torch.utils.checkpoint\ndef attend(): return 'torch._dynamo' in sys.modules"
    sent = {"args": wire.encode([]), "kwargs": wire.encode({})}
    calls = [{"mode": "call", "name": "attend", **sent}]
    *_, line = jail.run({"cells": [cell], "calls": calls}, jail.Limits())
    assert line["reply"]["value"] is True


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("x.__array_interface__", "`__array_interface__` in code cell 2 writes into memory"),
        ("from ctypes import memmove", "`ctypes` in code cell 2 writes into memory"),
        (
            "\uff45xec(source)",
            "`exec` in code cell 2 runs code that does not stand in the notebook",
        ),
        (
            "%time y = eval(x)",
            "`eval` in code cell 2 runs code that does not stand in the notebook",
        ),
        (
            "list(map(exec, [source]))",
            "`exec` in code cell 2 runs code that does not stand in the notebook",
        ),
        ("run = eval", "`eval` in code cell 2 runs code that does not stand in the notebook"),
        ("sys.modules['cty' 'pes']", "`ctypes` in code cell 2 writes into memory"),
        ('getattr(torch, "_re" + "fs")', "`_refs` in code cell 2 is a private part of PyTorch"),
        (
            "see = sys.getprofile()",
            "`getprofile` in code cell 2 finds what refuses, or comes into it",
        ),
        (
            "_thread.interrupt_main(10)",
            "`interrupt_main` in code cell 2 finds what refuses, or comes into it",
        ),
        (
            "from gc import enable",
            "import enable` in code cell 2 finds what refuses, or comes into it",
        ),
        (
            "frame = error.__traceback__.tb_frame",
            "`tb_frame` in code cell 2 finds what refuses, or comes into it",
        ),
        (
            "torch.jit.load(io.BytesIO(text))",
            "`jit.load` in code cell 2 runs code that does not stand in the notebook",
        ),
        ("torch \\\n. _refs", "`torch._refs` in code cell 2 is a private part of PyTorch"),
        ("from torch.jit import fork", "in code cell 2 computes where nothing is seen"),
        ("engine.run_backward(x)", "`run_backward` in code cell 2 computes where nothing is seen"),
        ("from torch import onnx", "`onnx` in code cell 2 computes where nothing is seen"),
    ],
)
def test_a_way_past_the_watch_is_named_with_its_cell(cell: str, told: str) -> None:
    (found,) = shortcuts.ways([FIRST, cell], [])
    assert found.endswith(told)
    assert list(shortcuts.ways([FIRST, cell], [cell])) == []


@pytest.mark.parametrize("text", ["F.", " ", "\\\\", "torch import ", "jit import ", "torch."])
def test_a_long_cell_is_searched_in_no_time(text: str) -> None:
    _search(f'x = "{text * (200_000 // len(text))}"')


def test_a_long_string_without_an_end_is_searched_in_no_time() -> None:
    _search("'" + "\\'" * 50_000)


def _search(cell: str) -> None:
    began = time.process_time()
    assert list(shortcuts.ways([cell], [])) == []
    assert time.process_time() - began < 20


def test_no_lawful_way_to_write_is_taken_for_one_past_the_watch() -> None:
    honest = [before + body for before, body in LAWFUL.values()]
    near = [
        "model.eval()  # no exec(…), no torch._refs",
        "import re, inspect, gc\nword = re.compile(r'x')\nhelp = inspect.getsource(F.layer_norm)",
        "class A:\n    def __init__(self, x): self._C, self._norm = x, x",
        "torch._dynamo.config.suppress_errors = True\nquick = torch.compile(answer)",
        "%timeit -n 3 F.layer_norm(torch.randn(3, 4), (4,))",
        "fit(model, eval=True)\nprint('in train, in eval, and (no exec)' ' once more')",
    ]
    assert list(shortcuts.ways([FIRST, *honest, *near], [])) == []


def test_a_forbidden_function_takes_the_points_of_its_question_alone() -> None:
    assignment = assignments.load("3_multi_head_and_block")
    results = assignment.run(0, {})
    answers = {question.name: question.answers for question in assignment.questions}
    made = [
        ({"name": "layer_norm"}, {"value": 1, "used": ["native_layer_norm"]}),
        ({"name": "layer_norm"}, {"value": 1, "used": ["rms_norm", "native_layer_norm"]}),
        ({"name": "self_attention_block"}, {"value": 1, "used": []}),
        ({"name": "split_heads"}, None),
        ({"name": "multi_head_attention"}, {"value": 1, "used": [], "slow": True}),
        ({"name": "multi_head_attention"}, {"value": 1}),
    ]
    verdicts = shortcuts.apply(results, answers, made)
    scores = {question: tests.score for question, tests in results.results.items()}
    assert scores == {"q1": 5, "q2": 7, "q3": 0, "q4": 5}
    assert verdicts == {
        "q2": {"names": [], "score": 7, "slow": True},
        "q3": {"names": ["native_layer_norm", "rms_norm"], "score": 3, "slow": False},
        "q4": {"names": [], "score": 5, "slow": False},
    }


def test_every_question_with_such_a_rule_says_so_in_its_text() -> None:
    for name in assignments.names():
        source = nbformat.read(course.sources() / f"{name}.ipynb", as_version=4)
        texts = {cell.id: cell.source for cell in source.cells}
        assert all("Write it yourself" in texts[f"{q}-text"] for q in course.forbidden(name))
