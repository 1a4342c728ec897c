"""The question bank: each key computed, each export read back, each kind of bad input refused."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import messages_ext
import pytest
import yaml
from coursework import bank, exports
from coursework.bank import BadQuestionError, Option, Question
from lxml import etree
from translations import marks

BANK = bank.load()
BY_ID = {question.id: question for question in BANK}
CHOICES = [question for question in BANK if question.kind == "choice"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    exports.write(folder, BANK)
    return folder


# What is in the bank


def test_each_chapter_has_its_questions() -> None:
    chapters = Counter(question.page for question in BANK if question.page != "before")
    assert len(chapters) == 12
    assert min(chapters.values()) >= 11
    assert sum(chapters.values()) >= 120


def test_kinds_and_levels_are_mixed() -> None:
    kinds, levels = (Counter(getattr(q, what) for q in BANK) for what in ("kind", "level"))
    assert kinds.keys() == set(bank.KINDS)
    assert kinds["numeric"] >= 20
    assert min(levels[level] for level in bank.LEVELS) >= 20


@pytest.mark.parametrize("question", BANK, ids=lambda question: question.id)
def test_the_key_is_computed(question: Question) -> None:
    bank.prove(question)


@pytest.mark.parametrize("question", BANK, ids=lambda question: question.id)
def test_each_option_has_feedback_of_its_own(question: Question) -> None:
    said = [question.because, *(option.feedback for option in question.wrong)]
    assert all(len(text) > 20 and text.endswith(".") for text in said)
    assert len(set(said)) == len(said)


def test_the_right_option_is_not_known_by_its_place() -> None:
    places = Counter(exports.in_order(q).index(q.right[0]) for q in CHOICES)
    assert sorted(places) == [0, 1, 2, 3]
    assert max(places.values()) < 0.36 * len(CHOICES)


def test_the_right_option_is_not_known_by_its_length() -> None:
    lengths = [[len(option.answer) for option in q.options] for q in CHOICES]
    for pick in (max, min):
        alone = [x for x in lengths if x[0] == pick(x) and x.count(x[0]) == 1]
        assert len(alone) < 0.34 * len(CHOICES)


def test_a_translator_gets_every_text_that_has_words() -> None:
    messages = {text for _, _, text in messages_ext.question_messages()}
    for question in BANK:
        for text in [*bank.texts(question), question.topic]:
            words = re.search("[A-Za-z]", re.sub(r"\$[^$]*\$|`[^`]*`", "", text))
            assert (text in messages) == bool(words), text
    # A translation must be one paragraph, and must repeat the marks of its message.
    kinds = {marks(text)[0] for text in messages}
    assert kinds == {"paragraph_open"}
    assert messages >= {exports.READ, exports.FOUND, *exports.TITLES.values()}


# The two tests


def test_the_forms_are_parallel() -> None:
    pairs = bank.forms(BANK)
    assert len(pairs) == 24
    assert [first.page for first, _ in pairs].count("before") == 5
    assert {first.page for first, _ in pairs} == {question.page for question in BANK}


def test_the_page_says_where_to_read_for_each_question() -> None:
    page = bank.PAGE.read_text(encoding="utf-8")
    assert page == bank.page(bank.forms(BANK)), "make questions writes it anew"
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == [*range(1, 25)]


# What Moodle reads: the elements that question/format/xml/format.php of Moodle imports


class Visible(HTMLParser):
    """The text of HTML, with the formulas of Canvas as Moodle has them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.said = ""
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.said += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        assert tag in {"p", "code", "em", "strong", "img", "span"}, tag
        if tag == "img":
            assert known["class"] == "equation_image"
            self.said += rf"\({known['data-equation-content']}\)"


def visible(text: str) -> str:
    # text2qti sets typographic quotation marks.
    said = Visible(text).said.translate(str.maketrans("’‘“”", "''\"\""))
    return re.sub(r"\s+", " ", said).strip()


def expected(text: str) -> str:
    """What a reader should see of a text of the bank."""
    text = re.sub(r"\$([^$]*)\$", lambda found: rf"\({found[1]}\)", text)
    parts = re.split(r"(`[^`]*`)", text)
    parts[0::2] = (re.sub(r"(?<!\w)\*(\w[^*]*)\*", r"\1", part) for part in parts[0::2])
    parts[1::2] = (part.strip("`") for part in parts[1::2])
    said = "".join(parts).translate(str.maketrans("’‘“”", "''\"\""))
    return re.sub(r"\s+", " ", said).strip()


def moodle_questions(path: Path) -> list[etree._Element]:
    quiz = etree.parse(path).getroot()
    assert quiz.tag == "quiz"
    assert {node.get("type") for node in quiz} <= {
        "category", "multichoice", "truefalse", "numerical"
    }  # fmt: skip
    return [node for node in quiz if node.get("type") != "category"]


@pytest.mark.parametrize("name", exports.TITLES)
def test_moodle_reads_each_question(written: Path, name: str) -> None:
    nodes = moodle_questions(written / "en" / f"{name}.moodle.xml")
    assert len(nodes) == (len(BANK) if name == "all" else 24)
    for node in nodes:
        question = BY_ID[node.findtext("name/text")]
        assert visible(node.findtext("questiontext/text")) == expected(question.text)
        answers = node.findall("answer")
        fractions = [float(answer.get("fraction")) for answer in answers]
        assert sum(f for f in fractions if f > 0) == pytest.approx(100)
        read = {visible(a.findtext("text")): a for a in answers}
        truth = question.kind == "truth"
        for option in question.options:
            said = option.answer.lower() if truth else expected(option.answer)
            answer = read.pop(said)
            assert (float(answer.get("fraction")) > 0) == (option in question.right)
            assert visible(answer.findtext("feedback/text")) == expected(option.feedback)
            if question.kind == "numeric":
                assert float(answer.findtext("tolerance")) == question.within > 0
        assert not read
        assert "$" not in etree.tostring(node, encoding="unicode")
        assert node.findtext("generalfeedback/text").startswith("Read again: ")


def test_moodle_knows_the_shares_of_a_question_with_several_answers(written: Path) -> None:
    # Moodle refuses a share that is not in the list of question/engine/bank.php.
    allowed = {100, 90, 83.33333, 80, 75, 70, 66.66667, 60, 50, 40, 33.33333, 30, 25, 20}
    for node in moodle_questions(written / "en" / "all.moodle.xml"):
        shares = {abs(float(answer.get("fraction"))) for answer in node.findall("answer")}
        assert shares <= allowed | {0}
        several = BY_ID[node.findtext("name/text")].kind == "several"
        assert node.findtext("single") == {"multichoice": str(not several).lower()}.get(
            node.get("type")
        )


# What Canvas reads: IMS content packaging and QTI 1.2


def canvas_items(path: Path) -> list[etree._Element]:
    """The items that the manifest of a package leads to, without their namespace."""
    with zipfile.ZipFile(path) as package:
        assert package.testzip() is None
        manifest = etree.fromstring(package.read("imsmanifest.xml"))
        files = [
            file.get("href")
            for resource in manifest.iterfind(".//{*}resource")
            if resource.get("type", "").startswith("imsqti_xmlv1p2")
            for file in resource.iterfind("{*}file")
        ]
        assert len(files) == 1
        tree = etree.fromstring(package.read(files[0]))
    for node in tree.iter():
        node.tag = etree.QName(node).localname
    assert tree.tag == "questestinterop"
    return tree.findall("assessment/section/item")


@pytest.mark.parametrize("name", exports.TITLES)
def test_canvas_reads_each_question(written: Path, name: str) -> None:
    items = canvas_items(written / "en" / f"{name}.canvas.zip")
    assert len(items) == (len(BANK) if name == "all" else 24)
    for item in items:
        question = BY_ID[item.get("title")]
        assert visible(item.findtext("presentation/material/mattext")) == expected(question.text)
        fields = {f.findtext("fieldlabel"): f.findtext("fieldentry")
                  for f in item.iter("qtimetadatafield")}  # fmt: skip
        kinds = {
            "choice": "multiple_choice_question",
            "several": "multiple_answers_question",
            "truth": "true_false_question",
            "numeric": "numerical_question",
        }
        assert fields["question_type"] == kinds[question.kind]
        feedback = {node.get("ident"): visible(node.findtext(".//mattext"))
                    for node in item.iterfind("itemfeedback")}  # fmt: skip
        assert feedback["general_fb"].startswith("Read again: ")
        scored = next(c for c in item.iter("respcondition") if c.find("setvar") is not None)
        assert scored.findtext("setvar") == "100"
        if question.kind == "numeric":
            assert float(scored.findtext(".//varequal")) == float(question.right[0].answer)
            bounds = [float(scored.findtext(f".//{b}")) for b in ("vargte", "varlte")]
            assert bounds[1] - bounds[0] == pytest.approx(2 * question.within)
            assert feedback["correct_fb"] == expected(question.because)
            assert all(expected(o.feedback) in feedback["general_incorrect_fb"]
                       for o in question.wrong)  # fmt: skip
            continue
        refused = {node.text for node in scored.iterfind(".//not/varequal")}
        chosen = {node.text for node in scored.iter("varequal")} - refused
        labels = {node.get("ident"): visible(node.findtext(".//mattext"))
                  for node in item.iter("response_label")}  # fmt: skip
        assert {labels[ident] for ident in chosen} == {expected(o.answer) for o in question.right}
        comments = {labels[ident]: feedback[f"{ident}_fb"] for ident in labels}
        assert comments == {expected(o.answer): expected(o.feedback) for o in question.options}


def test_another_language_reaches_both_files(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """A translation takes the place of its message; what has none stays English."""
    question = BY_ID["c03-masked-weight"]
    words = {question.text: r"第二个键的权重 $0$ 是多少?", exports.READ: "重读 {page}:{section}。"}
    pages = {"Masking": "掩码"}
    known = {"questions": words, "notebooks/03_masking": pages}
    monkeypatch.setattr(
        exports, "translations", lambda tag, name: known.get(name, {}) if tag == "zh_CN" else {}
    )
    exports.write(tmp_path, BANK)
    node = next(n for n in moodle_questions(tmp_path / "zh-CN" / "all.moodle.xml")
                if n.findtext("name/text") == question.id)  # fmt: skip
    item = next(i for i in canvas_items(tmp_path / "zh-CN" / "all.canvas.zip")
                if i.get("title") == question.id)  # fmt: skip
    for text in (
        node.findtext("questiontext/text"),
        item.findtext("presentation/material/mattext"),
    ):
        assert visible(text) == r"第二个键的权重 \(0\) 是多少?"
    assert node.findtext("generalfeedback/text").startswith("重读 掩码:")
    assert "This is" in etree.tostring(node, encoding="unicode")


def test_the_files_for_moodle_are_the_same_each_time(written: Path, tmp_path: Path) -> None:
    exports.write(tmp_path, BANK)
    for path in written.rglob("*.xml"):
        assert path.read_bytes() == (tmp_path / path.relative_to(written)).read_bytes()


# Bad input

GOOD = {
    "id": "good", "kind": "choice", "level": "easy", "topic": "sums", "section": "trap-01",
    "text": "What is $1 + 1$?", "right": "$2$", "because": "One and one is two.", "check": "1 + 1",
    "wrong": [{"answer": f"${n}$", "feedback": f"It is not {n}."} for n in (1, 3, 11)],
}  # fmt: skip


def bank_with(tmp_path: Path, *entries: dict) -> Path:
    source = {"chapter": "notebooks/03_masking", "questions": list(entries)}
    (tmp_path / "01.yaml").write_text(yaml.safe_dump(source), encoding="utf-8")
    return tmp_path


def test_the_good_question_is_good(tmp_path: Path) -> None:
    (question,) = bank.load(bank_with(tmp_path, GOOD))
    bank.prove(question)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"right": "$4$"}, "its right option “$4$” is wrong: its check says 2."),
        ({"wrong": [*GOOD["wrong"], {"answer": "$2.0$", "feedback": "no"}]}, "two right options"),
        ({"check": "1 +"}, "its check fails (SyntaxError"),
        ({"check": "False"}, "is wrong: its check says False."),
        ({"check": "[True, True, False, False]"}, "two right options, and “$1$” is one of them."),
        ({"right": "two"}, "“two” is no number, and gives no value."),
        ({"section": "trap-99"}, "“notebooks/03_masking” has no section “trap-99”."),
        ({"section": "notebooks/99_x#y"}, "there is no page “notebooks/99_x”."),
        ({"text": r"What is $\mathbb{R}$?"}, r"Moodle cannot show the formula “\mathbb{R}”"),
        ({"text": r"What is $\frac{1}{2$?"}, "its braces do not match."),
        ({"text": "What is $½$?"}, "it is empty, not ASCII"),
        ({"text": "It costs 5 $."}, "a formula does not end"),
        ({"because": "So $$1 + 1$$."}, "a formula does not end, or stands alone"),
        ({"kind": "essay"}, "the kind “essay” is none of"),
        ({"level": "cruel"}, "the level “cruel” is none of"),
        ({"wrong": GOOD["wrong"][:2]}, "it has too few wrong options."),
        ({"wrong": [*GOOD["wrong"], GOOD["wrong"][0]]}, "two of its options are the same text."),
        ({"kind": "truth", "wrong": GOOD["wrong"][:1]}, "are True and False."),
        ({"hint": "think"}, "it lacks a field, or has one too many"),
    ],
)
def test_a_bad_question_is_refused(tmp_path: Path, change: dict, sentence: str) -> None:
    with pytest.raises(BadQuestionError, match=r"^good: ") as refused:  # noqa: PT012
        (question,) = bank.load(bank_with(tmp_path, GOOD | change))
        bank.prove(question)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_id_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadQuestionError, match=r"^good: this id is used twice"):
        bank.load(bank_with(tmp_path, GOOD, GOOD))


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("c02-winner-dot", "c99-none", "there is no question “c99-none”"),
        ("c02-winner-dot", "c02-bounded", "which has another topic"),
        ("- [c02-winner-dot, c02-winner-distance]\n", "", "needs 24 different questions"),
    ],
)
def test_forms_that_do_not_match_are_refused(
    tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    text = (bank.QUESTIONS / "forms.yaml").read_text(encoding="utf-8")
    (tmp_path / "forms.yaml").write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(BadQuestionError, match=sentence):
        bank.forms(BANK, tmp_path)


def test_nothing_is_written_for_a_bad_bank(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = BY_ID["c03-masked-weight"]
    wrong = replace(good, right=(Option("$0.9$", "It is not."),))
    monkeypatch.setattr(bank, "load", lambda: [wrong])
    assert exports.main(tmp_path / "out") == 1
    assert "c03-masked-weight: its right option “$0.9$” is wrong" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
