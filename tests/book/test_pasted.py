"""The box in which printed numbers are compared: what systems print, what nobody should paste."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import examined_ext
import pytest
from browser import ROOT, Watched, built_book, chromium, serve
from playwright.sync_api import Browser, Page

from attention_book.mistakes import MISTAKES

PAGE = "notebooks/bring_your_own.html"
#: What systems print for the first case of attention: right, or with the mistake named.
PRINTED = {
    "NumPy": (
        "right",
        """
[[[[ 0.58261355 -0.07598661]
   [ 0.92755847  0.0988058 ]
   [ 0.80534872  0.17478224]]]]
""",
    ),
    "NumPy, repr": (
        "scale-twice",
        """
array([[[[0.51703773, 0.00139413],
         [0.6914464 , 0.08902931],
         [0.79797937, 0.13727758]]]], dtype=float32)
""",
    ),
    "PyTorch": (
        "scale-missing",
        """
tensor([[[[ 0.8807, -0.1978],
          [ 1.2444, -0.0043],
          [ 0.5741,  0.2588]]]], device='cuda:0', grad_fn=<UnsafeViewBackward0>)
""",
    ),
    "PyTorch, large and small": (
        "scale-missing",
        """
output: tensor([[ 8.8069e-01, -1.9781e-01],
        [ 1.2444e+00, -4.2950e-03],
        [ 5.7405e-01,  2.5881e-01]], dtype=torch.float64)
""",
    ),
    "MATLAB": (
        "right",
        """
ans(:,:,1,1) =

    0.5826


ans(:,:,2,1) =

    0.9276


ans(:,:,3,1) =

    0.8053


ans(:,:,1,2) =

   -0.0760


ans(:,:,2,2) =

    0.0988


ans(:,:,3,2) =

    0.1748

""",
    ),
    "MATLAB, scaled and in columns": (
        "scale-missing",
        """
>> squeeze(out)

ans =

   1.0e+00 *

  Column 1

    0.8807
    1.2444
    0.5741

  Column 2

   -0.1978
   -0.0043
    0.2588

""",
    ),
    "Julia": (
        "score-sign",
        """
1×1×3×2 Array{Float64, 4}:
[:, :, 1, 1] =
 0.5449811770939781

[:, :, 2, 1] =
 -0.16226640838389655

[:, :, 3, 1] =
 -1.1658944017644557

[:, :, 1, 2] =
 0.251192860816718

[:, :, 2, 2] =
 -0.10155568700645193

[:, :, 3, 2] =
 -0.41883829224344143
""",
    ),
    "Julia, a matrix": (
        "right",
        """
3×2 Matrix{Float64}:
 0.582614  -0.0759866
 0.927558   0.0988058
 0.805349   0.174782
""",
    ),
    "JSON": (
        "cosine-for-dot",
        '{"output": [[[[0.49989506474712275, 0.002577918178609903], [0.7100876100475926, '
        "0.0930797100988888], [0.7068669883983002, 0.11386053928636011]]]]}",
    ),
}
#: What is no answer to the first case of attention, and what the box says of it.
BAD = {
    "": "There are no numbers here yet.",
    "  \n ": "There are no numbers here yet.",
    "[]": "There are no numbers here yet.",
    "it does not work": "“it” is not a number. Paste the numbers alone.",
    "Traceback (most recent call last):": "“Traceback” is not a number.",
    "<script>alert(1)</script>": "“script” is not a number.",
    "0.58 -0.07 0.92 0.09": "4 numbers. This case has 6 numbers, in the shape (1, 1, 3, 2).",
    "0.5": "One number. This case has 6 numbers",
    "[[0.58 -0.07]\n ...\n [0.80 0.17]]": "Some numbers are left out at the dots. Print all of",
    "nan nan nan nan nan nan": "row 1 of 3: (NaN, NaN) in place of (0.5826, -0.07599).",
    "[[0.5826, -0.0760], [0.9276, 1e999], [0.8053, 0.1748]]": "row 2 of 3: (0.9276, Infinity) in",
    "[[0.5826, -0.0760], [0.9276, 0.0988], [0.8053, 0.2748]]": (
        "None of the known mistakes. The first row that differs from the right answer is row 3 of "
        "3: (0.8053, 0.2748) in place of (0.8053, 0.1748)."
    ),
    "[[0.5826, 0.9276, 0.8053], [-0.0760, 0.0988, 0.1748]]": (
        "Transposed. These are the right numbers, with the axes in another order."
    ),
    "[[0.8807, 1.2444, 0.5741], [-0.1978, -0.0043, 0.2588]]": (
        "Transposed. These are the numbers of a known mistake. scale-missing: "
    ),
    "1 0; 1 0; 1 0": "Right, as far as these digits tell. They also fit what is listed here.",
    "1 0; 1 0; 0 0": "So few digits fit several mistakes. Print more of them.",
    "0.25 " * 1_000_000: "That is too much for one case.",
}
#: Puts a text into the box, as pasting does, and gives back what is said.
PASTE = """(text) => {
  const form = document.querySelector("form.pasted");
  form.elements.printed.value = text;
  form.requestSubmit();
  return [form.dataset.verdict, form.querySelector("[role=status]").innerText];
}"""
#: One text after another; what is said of each.
PASTE_ALL = f"(texts) => texts.map((text) => ({PASTE})(text)[1])"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def home() -> Iterator[str]:
    with serve(built_book()) as served:
        yield served.address


@pytest.fixture(scope="module")
def watched(browser: Browser, home: str) -> Watched:
    watched = Watched(browser.new_context(), home)
    watched.page.goto(f"{home}/{PAGE}")
    return watched


def choose(page: Page, kind: str, case: str | None = None) -> None:
    page.select_option("form.pasted [name=kind]", kind)
    page.locator("form.pasted .case").wait_for()
    page.wait_for_function(
        "(kind) => document.querySelector('form.pasted').elements.given.value === kind",
        arg=examined_ext.cases(kind)[0]["id"],
    )
    if case:
        page.select_option("form.pasted [name=given]", case)


def test_while_cases_load_those_of_the_former_kind_judge_nothing(watched):
    held: list[Any] = []
    with watched.page.context.new_page() as page:
        page.goto(watched.page.url)
        choose(page, "attention")
        page.route("**/cases-softmax.js*", lambda route: held.append(route))
        with page.expect_request("**/cases-softmax.js*"):
            page.select_option("form.pasted [name=kind]", "softmax")
        assert page.evaluate(PASTE, PRINTED["PyTorch"][1])[1] == ""
        held[0].continue_()
        page.wait_for_function("document.querySelector('form.pasted').elements.given.length > 0")


@pytest.mark.parametrize("system", PRINTED)
def test_what_a_system_prints_is_read(watched, system):
    choose(watched.page, "attention")
    name, printed = PRINTED[system]
    verdict, said = watched.page.evaluate(PASTE, printed)
    if name == "right":
        assert (verdict, said) == ("right", "Right.")
    else:
        assert verdict == "wrong"
        assert said.startswith("These are the numbers of a known mistake.")
        assert f"{name}: {MISTAKES[name].sentence}" in said
    assert watched.errors == []


@pytest.mark.parametrize("typed", BAD, ids=lambda text: text[:20].strip() or "nothing")
def test_what_is_no_answer_is_told_so(watched, typed):
    choose(watched.page, "attention")
    verdict, said = watched.page.evaluate(PASTE, typed)
    assert verdict in ("wrong", "unreadable")
    assert BAD[typed] in " ".join(said.split())
    assert watched.errors == []


def written(numbers: Any, digits: int) -> str:
    """Numbers as a program prints them."""
    if isinstance(numbers, list):
        return f"[{', '.join(written(part, digits) for part in numbers)}]"
    return numbers if isinstance(numbers, str) else f"{float(numbers):.{digits}e}"


@pytest.mark.parametrize("kind", examined_ext.KINDS)
def test_every_answer_that_a_case_knows_is_recognised(watched, kind):
    page = watched.page
    for case in examined_ext.cases(kind):
        choose(page, kind, case["id"])
        given = [(["Right"], case["expected"])]
        given += [(one["names"], one["got"]) for one in case["mistakes"]]
        ways = [(written(got, 16), written(got, 7), json.dumps(got)) for _, got in given]
        answers = iter(page.evaluate(PASTE_ALL, [text for texts in ways for text in texts]))
        for (names, _), texts in zip(given, ways, strict=True):
            for text in texts:
                said = next(answers)
                assert all(name in said for name in names), (case["id"], names, text, said)
                assert "digits" not in said or text != texts[0], (case["id"], said)
        for one in case["accepted"]:
            said = page.evaluate(PASTE, written(one["got"], 16))[1]
            assert one["note"] in said, (case["id"], said)
    assert watched.errors == []


def test_the_box_works_by_keyboard_and_a_judgement_goes_with_its_answer(browser, home):
    watched = Watched(browser.new_context(), home)
    page = watched.page
    page.goto(f"{home}/{PAGE}")
    form = page.locator("form.pasted")
    assert not form.locator(".case").is_visible()
    form.locator("[name=kind]").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    form.locator(".case").wait_for()
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.getSelection().toString()").startswith("queries = np.array(")
    page.keyboard.press("Tab")
    page.keyboard.type("0.5826 -0.0760; 0.9276 0.0988; 0.8053 0.1748")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert form.get_by_role("status").inner_text() == "Right."
    assert form.get_attribute("data-verdict") == "right"
    page.keyboard.press("Shift+Tab")
    page.keyboard.type(" 1")
    assert form.get_attribute("data-verdict") is None
    assert form.get_by_role("status").inner_text() == ""
    assert watched.errors == []


@pytest.mark.parametrize("system", examined_ext.SYSTEMS)
def test_the_inputs_are_written_for_each_system(watched, system):
    page = watched.page
    choose(page, "attention", "mask")
    page.select_option("form.pasted [name=system]", system)
    text = page.locator("form.pasted [name=inputs]").input_value()
    case = next(one for one in examined_ext.cases("attention") if one["id"] == "mask")
    if system == "JSON":
        assert json.loads(text) == case["inputs"]
    elif system in ("NumPy", "PyTorch"):
        np = pytest.importorskip("numpy")
        torch = pytest.importorskip("torch")
        space: dict[str, Any] = {"np": np, "torch": torch}
        exec(text, space)
        for name, value in case["inputs"].items():
            assert space[name].tolist() == value
        assert space["queries"].dtype in (np.float64, torch.float64)
        assert space["allowed"].dtype in (np.bool_, torch.bool)
    else:
        make = {"MATLAB": "permute(reshape(", "Julia": "permutedims(reshape("}[system]
        assert text.count(make) == len(case["inputs"])
        assert ("[7, 3, 1, 2]), [4, 3, 2, 1]);" in text) == (system == "MATLAB")
        assert ("7, 3, 1, 2), (4, 3, 2, 1))" in text) == (system == "Julia")


def test_the_cases_are_loaded_when_the_box_is_used_and_it_is_light_before(browser):
    with serve(built_book()) as served:
        watched = Watched(browser.new_context(), served.address)
        watched.page.goto(f"{served.address}/{PAGE}")
        watched.page.wait_for_load_state("networkidle")
        assert not any("cases-" in path for path in served.sent)
        body = watched.page.locator("form.pasted").evaluate("(form) => form.outerHTML.length")
        assert served.sent["/_static/pasted.js"] + body <= 10_000
        choose(watched.page, "rotation")
        assert [path for path in served.sent if "cases-" in path] == ["/_static/cases-rotation.js"]


def test_a_book_on_disk_compares_too(browser):
    context = browser.new_context()
    context.set_offline(True)
    watched = Watched(context, built_book().as_uri())
    watched.page.goto((built_book() / PAGE).as_uri())
    choose(watched.page, "attention")
    assert watched.page.evaluate(PASTE, PRINTED["NumPy"][1]) == ["right", "Right."]
    assert (watched.errors, watched.outside) == ([], [])


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_box_fits_and_is_accessible(browser, home, width, scheme):
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 740})
    page = Watched(context, home).page
    page.goto(f"{home}/{PAGE}")
    page.add_script_tag(path=ROOT / "tests/_vendor/axe.min.js")
    choose(page, "attention")
    for text in ("", PRINTED["PyTorch"][1], PRINTED["NumPy"][1]):
        page.evaluate(PASTE, text)
        found = page.evaluate(
            'axe.run({ include: [[".exercise-box"]] }).then((result) => result.violations)'
        )
        assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []
        assert page.evaluate(
            """() => [...document.querySelectorAll("form.pasted, form.pasted *")]
              .every((part) => part.getBoundingClientRect().right <= innerWidth)"""
        )
    context.close()


def test_every_mistake_has_a_row_and_the_exhibits_are_there():
    page = (built_book() / PAGE).read_text(encoding="utf-8")
    for name, mistake in MISTAKES.items():
        assert f'id="mistake-{name}"' in page
        assert not mistake.exhibit or f'#{mistake.exhibit}"' in page
