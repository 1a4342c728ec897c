"""Exercises in the page: every answer is judged there as Python's check judges it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from answering import CHAPTERS, in_python
from browser import ROOT, Watched, built_book, chromium, serve
from declared import declared, named
from playwright.sync_api import Browser, Page

from attention_book.exercises import checker
from attention_book.exercises.checker import Exercise, Part, exercises

LANGUAGES = {"en": "", "zh_CN": "zh/"}
#: What anybody may type into any field.
ABSURD = (
    *("", " ", "words", "1e999", "-1e999", "nan", "1/0", "3/7", "(2,3)", "2x3", "２×３", "[2, 3]"),
    *("１．５", "1，2、3", "1; 2; 3", "[[1,2],[3]]", "[[1,2],[3,4]]", "1 2\n3 4", "−0", "1 2"),
    *("<b>x</b>", "(" * 50, "9" * 301, "50%", "½", "2½", "2³⁰", "-3/√5", "e^1", "9^9^9", "(-8)^.5"),
    *("0,5", "1,536", "2 363 904", "= 5", "m = 4", "٣", "十", "1/ln(1)", "exp(1000)", "2(3+1)"),
    *("ij,jk->ik", "bij,bjc->bic", "...ij,...jc->...ic", "aab,bjc->a", "ij", "error", "错误", "()"),
    *(
        "torch.Size([7, 9])",
        "7*9",
        "2.5, 3",
        "1e3",
        ".5",
        "5.",
        "--5",
        "+5",
        "5 MB",
        "-2^2",
        "1,,2",
    ),
)
#: Answers all that it is given, one after the other, and notes what is said.
ANSWER = """(asked) => asked.map(([name, typed]) => {
  const form = document.querySelector(`form[data-exercise="${name}"]`);
  typed.forEach((text, i) => {
    const field = form.elements[`part-${i}`];
    if (field.length === undefined) field.value = text;
    else for (const radio of field) radio.checked = radio.value === text;
  });
  form.requestSubmit();
  const lead = form.querySelector("[role=status] strong");
  lead?.remove();
  return [form.dataset.verdict, form.querySelector("[role=status]").textContent.trim()];
})"""


def page_of(chapter: int, language: str = "en") -> str:
    return f"{LANGUAGES[language]}notebooks/{CHAPTERS[chapter].stem}.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def home() -> Iterator[str]:
    with serve(built_book()) as served:
        yield served.address


@pytest.fixture(autouse=True)
def nothing_stays_open(browser: Browser) -> Iterator[None]:
    """A page that stays open goes on computing."""
    yield
    for context in browser.contexts:
        context.close()


def opened(browser: Browser, home: str, chapter: int, language: str = "en") -> Watched:
    watched = Watched(browser.new_context(), home)
    watched.page.goto(f"{home}/{page_of(chapter, language)}")
    return watched


def typed(part: Part, value: Any) -> str:
    """A value as somebody types it."""
    if part.kind in ("choice", "line"):
        return str(part.options.index(value))
    if part.kind == "rows":
        return "\n".join(" ".join(map(repr, row)) for row in value)
    if part.kind == "numbers":
        return ", ".join(map(repr, value))
    return str(value)


def answers(exercise: Exercise) -> list[list[str]]:
    """The right answer; with each part replaced by each known mistake and by all that is absurd."""
    right = [typed(part, part.right) for part in exercise.parts]
    found = [right]
    for at, part in enumerate(exercise.parts):
        if part.kind in ("choice", "line"):
            others = ["", *map(str, range(len(part.options)))]
        else:
            others = [*(typed(part, wrong) for wrong in part.mistakes), *ABSURD]
            if part.kind != "rows":  # one line
                others = [text for text in others if "\n" not in text]
        found += [[*right[:at], other, *right[at + 1 :]] for other in others]
    return found


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_page_and_python_say_the_same_of_every_answer(
    browser, home, monkeypatch, chapter, language
):
    monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", language)
    asked = [
        (exercise, given)
        for exercise in exercises(chapter).values()
        if exercise.parts
        for given in answers(exercise)
        if given != [""] or not exercise.question
    ]
    watched = opened(browser, home, chapter, language)
    said = watched.page.evaluate(ANSWER, [(exercise.name, given) for exercise, given in asked])
    verdicts = set()
    for (exercise, given), (verdict, sentence) in zip(asked, said, strict=True):
        expected = checker.judge(exercise.name, in_python(exercise, given))
        assert (verdict, sentence) == expected, (exercise.name, given)
        verdicts.add(verdict)
    assert verdicts >= {"right", "wrong", "unreadable"}
    assert watched.errors == []
    assert watched.outside == []
    watched.page.context.close()


def test_every_exercise_with_a_check_is_in_its_page_and_none_says_that_it_is_not_answered():
    counts = {}
    for number, path in CHAPTERS.items():
        asked = {named(cell.source) for cell in nbformat.read(path, as_version=4).cells} - {""}
        assert asked == set(exercises(number))
        html = (built_book() / page_of(number)).read_text(encoding="utf-8")
        forms = set(re.findall(r'data-exercise="([\d.]+)"', html))
        assert forms == {name for name in asked if declared(name).parts}
        assert html.count('class="exercise-box ') == len(asked)
        code = [name for name in asked if declared(name).question or not declared(name).parts]
        assert html.count('class="run-it"') == len(code)
        assert html.count('class="hint"') == 2 * len(asked)
        assert "not answered yet" not in html
        counts[number] = (len(asked), len(forms), len(asked) - len(code))
    # Of each chapter: exercises with a check, those judged in the page, those that ask the same.
    assert counts == {
        **{1: (6, 6, 4), 2: (6, 6, 4), 3: (5, 5, 1), 4: (5, 5, 4), 5: (5, 4, 2)},
        **{6: (5, 4, 4), 7: (4, 3, 2), 8: (4, 3, 2), 9: (4, 4, 2), 10: (4, 3, 3), 11: (7, 6, 4)},
        12: (5, 5, 4),
    }
    assert sum(same for _, _, same in counts.values()) >= 28


def test_every_exercise_has_two_hints_and_neither_tells_the_answer():
    for number in CHAPTERS:
        for exercise in exercises(number).values():
            assert len(set(exercise.hints)) == 2
            assert exercise.importance in (1, 2, 3)
            for hint in exercise.hints:
                assert exercise.why not in hint
                assert not any(
                    part.kind == "line" and part.right in hint for part in exercise.parts
                )


def test_an_answer_is_given_and_corrected_by_keyboard(browser, home):
    watched = opened(browser, home, 1)
    page = watched.page
    form = page.locator('form[data-exercise="1.3"]')
    form.locator("input").focus()
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    assert form.get_attribute("data-verdict") == "wrong"
    assert form.get_by_role("status").inner_text() == (
        "Not right. 4 is not enough: the best key gets 0.98."
    )
    assert form.locator("input").get_attribute("aria-invalid") == "true"
    page.keyboard.press("Backspace")
    assert form.get_attribute("data-verdict") is None, "the judgement was of another answer"
    assert form.get_by_role("status").inner_text() == ""
    page.keyboard.type("5")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert form.get_attribute("data-verdict") == "right"
    choice = page.locator('form[data-exercise="1.2"]')
    choice.locator("input").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert choice.get_attribute("data-verdict") == "right"
    assert watched.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("chapter", [1, 2])
def test_forms_are_accessible_before_and_after_a_judgement(browser, home, chapter, scheme):
    watched = Watched(browser.new_context(color_scheme=scheme), home)
    page = watched.page
    page.goto(f"{home}/{page_of(chapter)}")
    asked = [(one.name, answers(one)[at]) for at in (0, 1) for one in exercises(chapter).values()]
    page.add_script_tag(path=ROOT / "tests/_vendor/axe.min.js")
    for given in ([], asked):
        page.evaluate(ANSWER, given)
        found = page.evaluate(
            """axe.run({ include: [[".exercise-box"], [".progress-line"]] })
              .then((result) => result.violations)"""
        )
        assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []


# --- What is remembered -----------------------------------------------------------------------


def answer_right(page: Page, *names: str) -> None:
    page.evaluate(ANSWER, [(name, answers(declared(name))[0]) for name in names])


def shown(page: Page) -> tuple[str, str]:
    """What the chapter and what the contents say of the progress."""
    here = page.locator(".progress-line span").inner_text()
    return here, page.locator(".bd-docs-nav li.current .progress-count").all_inner_texts()


def test_what_is_done_is_counted_kept_and_forgotten(browser, home):
    watched = opened(browser, home, 1)
    page = watched.page
    assert shown(page) == ("0 of 11", [])
    assert not page.locator(".progress-line button").is_visible()
    answer_right(page, "1.1", "1.4")
    page.evaluate(ANSWER, [("1.3", ["4"]), ("1.5", ["words"])])
    assert shown(page) == ("2 of 11", ["2 of 11"])
    page.goto(f"{home}/{page_of(1, 'zh_CN')}")  # the other edition knows it too
    assert page.locator("form[data-done]").count() == 2
    page.goto(f"{home}/{page_of(2)}")
    assert shown(page) == ("0 of 9", [])
    assert page.locator(".progress-count").all_inner_texts() == ["2 of 11"]
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.locator(".progress-line button").click()
    assert page.locator(".progress-count").count() == 1
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator(".progress-line button").click()
    assert page.locator(".progress-count").count() == 0
    assert page.evaluate("localStorage.getItem('attention-book.progress.1')") is None
    page.reload()
    assert page.locator(".progress-count").count() == 0
    assert (watched.errors, watched.outside) == ([], [])


def test_a_prediction_and_a_challenge_count_too(browser, home):
    watched = opened(browser, home, 1)
    page = watched.page
    figure = page.locator('attention-figure[kind="regression"]')
    figure.locator(".af-form").wait_for()
    for what in ("prediction", "challenge"):
        figure.locator(".af-form").evaluate(
            """(form, detail) => form.parentElement.dispatchEvent(
                 new CustomEvent("attention-done", { bubbles: true, detail }))""",
            what,
        )
    assert shown(page)[0] == "2 of 11"
    assert figure.get_attribute("data-done") == "prediction challenge"
    figure.evaluate(
        """(figure) => figure.dispatchEvent(
             new CustomEvent("attention-done", { bubbles: true, detail: "something else" }))"""
    )
    assert shown(page)[0] == "2 of 11"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_can_be_done_on_a_page_is_what_is_counted(browser, home, chapter):
    page = opened(browser, home, chapter).page
    for figure in page.locator("attention-figure").all():
        figure.scroll_into_view_if_needed()
        figure.locator(".af-form").wait_for()
    listed = page.evaluate("attentionProgress.pages[DOCUMENTATION_OPTIONS.pagename]")
    found = page.evaluate(
        """() => {
          const found = [...document.querySelectorAll("form[data-exercise]")];
          const figures = [...document.querySelectorAll("attention-figure")];
          return found.map((form) => form.dataset.exercise).concat(figures.flatMap((figure, i) => {
            const kinds = figures.slice(0, i + 1).map((other) => other.getAttribute("kind"));
            const count = kinds.filter((other) => other === kinds[i]).length;
            const kind = count > 1 ? `${kinds[i]}-${count}` : kinds[i];
            return [
              ...(figure.querySelector(".af-predict") ? [`prediction ${kind}`] : []),
              ...(figure.querySelector(".af-challenge")?.textContent ? [`challenge ${kind}`] : []),
            ];
          }));
        }"""
    )
    assert sorted(found) == sorted(listed)
    page.context.close()


BLOCKED = """Object.defineProperty(window, "localStorage", { configurable: true,
  get() { throw new DOMException("blocked", "SecurityError"); } });"""
FULL = """Storage.prototype.setItem = () => {
  throw new DOMException("full", "QuotaExceededError"); };"""
OLD = [
    *('{"a":', "null", "5", '"words"', "[1, 2]", "{}"),
    json.dumps({"notebooks/01_queries_keys_values": 5, "gone": ["1.1"]}),
    json.dumps({"notebooks/01_queries_keys_values": {"1.1": True}}),
]


@pytest.mark.parametrize("script", [BLOCKED, FULL], ids=["blocked", "full"])
def test_a_page_works_where_storage_is(browser, home, script):
    watched = Watched(browser.new_context(), home)
    watched.page.add_init_script(script)
    watched.page.goto(f"{home}/{page_of(1)}")
    answer_right(watched.page, "1.1")
    assert shown(watched.page) == ("1 of 11", ["1 of 11"])
    assert watched.errors == []


def test_what_another_edition_stored_does_no_harm(browser, home):
    watched = opened(browser, home, 1)
    page = watched.page
    for stored in OLD:
        page.evaluate("(text) => localStorage.setItem('attention-book.progress.1', text)", stored)
        page.reload()
        assert shown(page) == ("0 of 11", []), stored
        answer_right(page, "1.4")
        page.reload()
        assert shown(page) == ("1 of 11", ["1 of 11"]), stored
    assert watched.errors == []


def test_items_that_the_book_no_longer_has_are_not_counted(browser, home):
    page = opened(browser, home, 1).page
    stored = json.dumps({"notebooks/01_queries_keys_values": ["1.1", "1.99", "challenge gone"]})
    page.evaluate("(text) => localStorage.setItem('attention-book.progress.1', text)", stored)
    page.reload()
    assert shown(page)[0] == "1 of 11"


def test_a_book_on_disk_judges_and_remembers(browser):
    context = browser.new_context()
    context.set_offline(True)
    watched = Watched(context, built_book().as_uri())
    page = watched.page
    page.goto((built_book() / page_of(2)).as_uri())
    answer_right(page, "2.1", "2.2")
    assert page.locator('form[data-exercise="2.2"]').get_attribute("data-verdict") == "right"
    page.goto((built_book() / page_of(3)).as_uri())
    assert page.locator(".progress-count").all_inner_texts() == ["2 of 9"]
    assert (watched.errors, watched.outside) == ([], [])
