"""The scripts behind `make notebooks` and `make test`."""

from __future__ import annotations

import base64
import copy
import importlib.util
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from email.message import Message
from pathlib import Path, PurePosixPath
from types import ModuleType, SimpleNamespace
from zipfile import ZipFile

import nbformat
import numpy as np
import pytest
import yaml
from browser import BROWSERS, ROOT
from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from scripts import tool

NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))


def execute(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "execute.py", path, *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_holds_nothing_of_the_machine_that_ran_it(path):
    stored = nbformat.read(path, as_version=4)
    tidied = copy.deepcopy(stored)
    tool("execute").tidy(tidied)
    pairs = zip(stored.cells, tidied.cells, strict=True)
    changed = [before.id for before, after in pairs if before != after]
    assert not changed, f"{path.name} was not stored by make notebooks: cells {changed}"
    assert tidied.metadata == stored.metadata, f"{path.name} was not stored by make notebooks"
    assert str(ROOT) not in path.read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path):
    """A notebook that prints twice and fails on purpose, written with a cell that may vary."""

    def write(*sources: str):
        cells = [new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
        cells[-1].metadata["tags"] = ["raises-exception"]
        path = tmp_path / "11_made_up.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return write


def test_running_a_notebook_twice_stores_the_same_bytes(written):
    path = written(
        "import sys, time\nprint('first', flush=True); print('second', flush=True)",
        "print(time.time(), file=sys.stderr)",
        "error = ValueError('meant')\nerror.add_note('and why')\nraise error",
    )
    assert execute(path).returncode == 0
    once = path.read_bytes()
    assert execute(path).returncode == 0
    assert path.read_bytes() == once
    cells = nbformat.read(path, as_version=4).cells
    assert [output.text for output in cells[0].outputs] == ["first\nsecond\n"]
    assert cells[1].outputs == []
    assert cells[2].outputs[0].traceback == ["ValueError: meant\nand why"]


def test_a_measured_time_stays_until_timings_are_asked_for(written):
    path = written("import time; print(time.perf_counter_ns())")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(notebook, path)

    def measured(*options: str) -> str:
        assert execute(path, *options).returncode == 0
        return nbformat.read(path, as_version=4).cells[0].outputs[0].text

    first = measured()
    assert measured() == first
    assert measured("--timings") != first


@pytest.mark.parametrize(
    ("changed", "kept"), [(None, [True, True]), (0, [False, False]), (1, [True, False])]
)
def test_a_time_is_measured_anew_when_its_cell_changes_and_what_draws_it_is_drawn_anew(
    changed, kept
):
    cell, output = nbformat.v4.new_code_cell, nbformat.v4.new_output
    tags = ["nbval-ignore-output", "keep-output"]
    before = nbformat.v4.new_notebook(cells=[cell("a", metadata={"tags": [tag]}) for tag in tags])
    tool("execute").keep_times(before, None)
    after = copy.deepcopy(before)
    for each in after.cells:
        each.outputs = [output("stream", text="now")]
    if changed is not None:
        after.cells[changed].source += "  # changed"
    tool("execute").keep_times(after, before)
    assert [each.outputs == [] for each in after.cells] == kept


def test_a_cell_that_fails_unmeant_is_named_and_nothing_is_stored(written):
    path = written("1 / 0", "2")
    before = path.read_bytes()
    ran = execute(path)
    assert ran.returncode == 1
    assert "11_made_up.ipynb" in ran.stdout
    assert "ZeroDivisionError" in ran.stdout
    assert path.read_bytes() == before


def test_one_failing_part_fails_the_whole_and_the_others_still_run(monkeypatch, capsys):
    check = tool("check")
    parts = {
        "first": [sys.executable, "-c", "print('one'); raise SystemExit(3)"],
        "second": [sys.executable, "-c", "print('two')"],
    }
    monkeypatch.setattr(check, "PARTS", parts)
    assert check.main() == 1
    said = capsys.readouterr().out
    assert said.startswith("\n=== first ===\none\n\n=== second ===\ntwo\n")
    assert "first      failed" in said
    assert "second     ok" in said


def test_a_notebook_is_tidied_without_being_run_and_a_hook_is_told(written):
    path = written("raise ValueError('never run')")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["execution"] = {"iopub.execute_input": "today"}
    nbformat.write(notebook, path)
    assert execute(path, "--tidy").returncode == 1
    [cell] = nbformat.read(path, as_version=4).cells
    assert "execution" not in cell.metadata
    assert cell.outputs == []
    assert execute(path, "--tidy").returncode == 0


def test_a_notebook_that_is_not_there_is_named(tmp_path):
    ran = execute(tmp_path / "99*.ipynb")
    assert ran.returncode == 2
    assert "no notebook 99*.ipynb" in ran.stdout


def test_jupyterlab_asks_nobody_for_news_and_keeps_what_else_is_set(tmp_path):
    lab, settings = tool("lab"), tmp_path / "settings" / "overrides.json"
    lab.be_quiet(settings)
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "mine": {"dark": True}}))
    lab.be_quiet(settings)
    told = json.loads(settings.read_text())
    assert told["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert told["mine"] == {"dark": True}


def test_on_colab_the_package_is_fetched_at_its_commit_only_where_it_is_missing(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ATTENTION_BOOK_REPOSITORY", "https://github.com/owner/repo")
    colab = tool("colab")
    monkeypatch.setattr(colab, "ROOT", tmp_path)
    assert colab.main() == 0
    written = sorted((tmp_path / "_build" / "colab" / "notebooks").glob("*.ipynb"))
    assert [path.name for path in written] == [path.name for path in NOTEBOOKS]
    first = nbformat.read(written[0], as_version=4).cells[0].source
    source = TransformerManager().transform_cell(first)
    ran = []
    shell = SimpleNamespace(run_line_magic=lambda *magic: ran.append(magic))
    exec(source, {"get_ipython": lambda: shell})
    assert ran == []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exec(source, {"get_ipython": lambda: shell})
    [(magic, line)] = ran
    assert magic == "pip"
    address = "git+https://github.com/owner/repo"
    assert re.search(rf'"attention-book @ {re.escape(address)}@[0-9a-f]{{40}}"$', line)


CHROMIUM = ["chromium-headless-shell", "chromium", "chromium-browser"]  # as apt-get is asked


class Machine:
    """A folder of commands, the only ones that there are for tools/system.sh."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("bash", "env", "true", "ln"):
            (folder / name).symlink_to(shutil.which(name))

    def add(self, name: str, script: str = "") -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def needs(self, what: str) -> subprocess.CompletedProcess[str]:
        command = [ROOT / "tools" / "system.sh", what]
        environment = {"PATH": str(self.folder)}
        return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path / "bin")
    made.add("id", "echo 1000")
    return made


@pytest.mark.parametrize(
    ("what", "missing", "other"),
    [
        ("browser", "Chromium", "bubblewrap"),
        ("fonts", "Chinese", "Chrom"),
        ("jail", "bubblewrap", "Chrom"),
    ],
)
def test_a_missing_program_is_named_in_one_line_and_no_other(machine, what, missing, other):
    said = machine.needs(what)
    assert said.returncode == 1
    assert said.stderr == ""
    [line] = said.stdout.splitlines()
    assert missing in line
    assert other not in line


@pytest.mark.parametrize(
    ("what", "other", "command"),
    [*(("browser", "jail", name) for name in BROWSERS), ("jail", "browser", "bwrap")],
)
def test_a_program_that_is_there_is_enough_for_what_needs_it_alone(machine, what, other, command):
    machine.add(command)
    assert machine.needs(what).returncode == 0
    assert machine.needs(other).returncode == 1


def test_fonts_are_there_where_one_has_chinese_characters(machine):
    machine.add("fc-list", '[ "$1" = :lang=zh-cn ] && echo Noto')
    assert machine.needs("fonts").returncode == 0
    machine.add("fc-list")
    assert machine.needs("fonts").returncode == 1


@pytest.mark.parametrize(
    ("what", "there", "asked"),
    [
        ("fonts", {}, ["fontconfig", "fonts-noto-cjk"]),
        ("browser", {"chromium": "chromium"}, ["chromium-headless-shell", "chromium"]),
        ("browser", {"chromium-browser": "chromium-browser"}, CHROMIUM),
        ("browser", {}, CHROMIUM),
        ("jail", {"bubblewrap": "bwrap"}, ["bubblewrap"]),
        ("jail", {}, ["bubblewrap"]),
    ],
)
def test_apt_get_installs_what_is_missing_and_a_list_it_cannot_renew_does_not_stop_it(
    machine, tmp_path, what, there, asked
):
    machine.add("id", "echo 0")
    installs = "; ".join(
        f'[ "$4" = {package} ] && ln -s true {machine.folder}/{command} && exit 0'
        for package, command in there.items()
    )
    log = tmp_path / "asked"
    machine.add("apt-get", f'[ "$1" = update ] && exit 1; echo "$4" >> {log}\n{installs}\nexit 1')
    assert machine.needs(what).returncode == (0 if there else 1)
    assert log.read_text().split() == asked


def make(*arguments: str, folder: Path = ROOT) -> str:
    """What `make` says, told nothing by a `make` that runs these tests."""
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    said = subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    return said.stdout + said.stderr


@pytest.mark.parametrize(
    ("target", "needs"),
    [
        ("book", []),
        ("lab", []),
        ("grade", ["jail"]),
        ("pdf", ["browser", "fonts"]),
        ("test", ["browser", "jail"]),
    ],
)
def test_a_command_asks_for_the_system_programs_that_it_needs_alone(target, needs):
    assert re.findall(r"tools/system\.sh (\w+)", make("--dry-run", target)) == needs


def supported() -> tuple[int, int]:
    """The oldest and the newest 3.x that the package says it runs on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"])
    assert bounds is not None
    return int(bounds[1]), int(bounds[2]) - 1


def test_another_python_than_the_supported_ones_is_refused_in_one_line(tmp_path):
    oldest, newest = supported()
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "coursework" / "grader").mkdir(parents=True)
    student = "requirements-student.txt"
    for name in (
        *("requirements.txt", student, "constraints.txt", "pyproject.toml"),
        *("requirements/test.txt", "coursework/grader/pyproject.toml"),
    ):
        (tmp_path / name).touch()
    python = tmp_path / "python"

    def said(minor: int) -> str:
        """What make says where Python is 3.`minor`, which has no `ensurepip`."""
        told = f"import sys; sys.version_info = (3, {minor}, 0); sys.modules['ensurepip'] = None; "
        python.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo Python 3.{minor}.0 && exit\n'
            f'exec {sys.executable} -c "{told}$2"\n'
        )
        python.chmod(0o755)
        return make("--silent", ".venv/.book", f"PYTHON={python}", folder=tmp_path)

    for minor in (oldest - 1, newest + 1):
        first, *rest = said(minor).splitlines()
        assert f"Python 3.{minor}.0: this book needs Python 3.{oldest} to 3.{newest};" in first
        assert len(rest) == 1  # make's own word that it stops
    for minor in (oldest, newest):
        assert "has no venv module" in said(minor)


def test_the_supported_pythons_are_the_same_ones_everywhere():
    oldest, newest = supported()
    for name in ("README.md", "Makefile"):
        named = re.findall(
            r"Python 3\.(\d+) to 3\.(\d+)", (ROOT / name).read_text(encoding="utf-8")
        )
        assert set(named) == {(str(oldest), str(newest))}, name
    checks = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    tried = checks["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tried == [f"3.{minor}" for minor in range(oldest, newest + 1)]


def pinned(name: str) -> dict[str, str]:
    """The versions that a file of requirements states, by the packages' names."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(re.findall(r"^([\w-]+)==(\S+)$", "\n".join(lines), re.MULTILINE))


def test_every_requirement_states_the_version_that_is_locked():
    locked = pinned("constraints.txt")
    assert len(locked) > 200
    for name in ("requirements.txt", "requirements/book.txt", "requirements/test.txt"):
        asked = pinned(name)
        assert asked.items() <= locked.items(), name
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        named = [line for line in lines if line and not line.startswith(("#", "-"))]
        assert len(named) == len(asked), name
    assert not any("+" in version for version in locked.values())  # which fits one index only


def test_a_lock_says_for_which_python_a_version_is_where_they_differ():
    resolved = {
        "3.11": {"both": "1.0", "older": "1.0", "newer": "1.0", "shim": "2.0"},
        "3.12": {"both": "1.0", "older": "1.0", "newer": "2.0"},
        "3.13": {"both": "1.0", "older": "2.0", "newer": "2.0"},
    }
    assert tool("lock").lines(resolved) == [
        "both==1.0",
        'newer==1.0 ; python_version == "3.11"',
        'newer==2.0 ; python_version >= "3.12"',
        'older==1.0 ; python_version == "3.11" or python_version == "3.12"',
        'older==2.0 ; python_version >= "3.13"',
        "shim==2.0",
    ]


@pytest.fixture
def installer(tmp_path, monkeypatch):
    """The installer over an empty folder, with a stand-in for pip that does as it is told."""
    module = tool("install")
    for name, path in {
        "ROOT": tmp_path,
        "VENV": tmp_path / ".venv",
        "PYTHON": tmp_path / ".venv" / "bin" / "python",
        "LOG": tmp_path / ".venv" / "pip.log",
        "HALF_MADE": tmp_path / ".venv" / ".half-made",
        "MADE_FOR": tmp_path / ".venv" / ".made-for",
    }.items():
        monkeypatch.setattr(module, name, path)
    return module


def make_venv(installer: ModuleType, script: str) -> Path:
    """An environment whose Python runs a shell script; every making of it is counted in `made`."""
    python = installer.PYTHON
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\n[ "$4" = "" ] && exit 0\n{script}\n')
    python.chmod(0o755)
    installer.MADE_FOR.write_text(str(installer.ROOT))
    return python


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full."),
        ("WARNING: NewConnectionError(x)\nERROR: No matching distribution", "is the network up?"),
        ("ERROR: Could not install: [Errno 13] Permission denied", "belongs to another user"),
        ("noise\n    ERROR: Cannot install a and b\nmore", "ERROR: Cannot install a and b"),
        ("killed", "killed"),
    ],
)
def test_why_an_installation_failed_is_said_in_one_line(installer, capsys, said, why):
    make_venv(installer, f"cat <<'END'\n{said}\nEND\nexit 1")
    assert installer.main("book") == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("Installing requirements/book.txt")
    assert last.startswith("Not installed. ")
    assert why in last
    assert installer.LOG.read_text() == f"{said}\n"
    assert not (installer.VENV / ".book").exists()
    assert installer.is_sound()  # nothing was written yet, so what was there is kept


@pytest.mark.parametrize("spoilt", ["half made", "no python", "python fails", "another folder"])
def test_an_environment_that_does_not_work_is_made_anew(installer, monkeypatch, spoilt):
    python = make_venv(installer, "echo Installing collected packages; exit 1")
    match spoilt:
        case "half made":
            assert installer.main("book") == 1
        case "no python":
            python.unlink()
        case "python fails":
            python.write_text("#!/bin/sh\nexit 1\n")
        case "another folder":
            installer.MADE_FOR.write_text("/elsewhere")
    (installer.VENV / "left over").touch()
    assert not installer.is_sound()
    run = subprocess.run
    monkeypatch.setattr(
        installer.subprocess,
        "run",
        lambda command, **options: (
            make_venv(installer, "exit 0") and SimpleNamespace(returncode=0)
            if "venv" in command
            else run(command, **options)
        ),
    )
    assert installer.main("test") == 0
    assert installer.is_sound()
    assert not (installer.VENV / "left over").exists()
    assert all((installer.VENV / f".{name}").exists() for name in ("book", "run", "test"))


@pytest.mark.parametrize(
    ("gpu", "index", "asked"),
    [
        (False, None, ["https://download.pytorch.org/whl/cpu"]),
        (False, "https://mirror/cpu", ["https://mirror/cpu"]),
        (False, "", []),
        (True, None, []),
    ],
)
def test_without_a_gpu_the_build_without_gpu_code_is_tried_once_and_may_fail(
    installer, monkeypatch, gpu, index, asked
):
    log = installer.ROOT / "asked"
    make_venv(installer, f'echo "$@" >> {log}; case "$@" in *--index-url*) exit 1;; esac')
    monkeypatch.setattr(installer, "has_gpu", lambda: gpu)
    monkeypatch.setattr(installer.sys, "platform", "linux")
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    if index is not None:
        monkeypatch.setenv("TORCH_INDEX", index)
    assert installer.main("run") == 0
    *first, last = log.read_text().splitlines()
    assert [re.search(r"--index-url (\S+)", line)[1] for line in first] == asked
    assert last.endswith("-r requirements.txt")
    log.unlink()
    assert installer.main("book") == 0
    assert "torch" not in log.read_text()


def test_a_second_command_waits_for_the_first(tmp_path):
    lock, log = tmp_path / "lock", tmp_path / "log"
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r})\n"
        "from pathlib import Path\nfrom alone import alone\n"
        f"with alone(Path({str(lock)!r}), 'busy'):\n"
        f"    Path({str(log)!r}).open('a').write('second')"
    )
    with tool("alone").alone(lock, "busy"):
        second = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert "Another command is busy; waiting" in second.stdout.readline()
        log.write_text("first ")
    assert second.wait() == 0
    second.stdout.close()
    assert log.read_text() == "first second"


def test_a_port_that_cannot_be_used_is_named_before_the_book_is_built(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for port in (str(taken.getsockname()[1]), "99999", "http"):
            assert tool("serve").main(port) == 1
            [line] = capsys.readouterr().out.splitlines()
            assert line.startswith(f"Port {port} cannot be used")
            assert "make serve PORT=" in line


def test_the_package_states_its_version_once_and_its_changes_and_licence():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert project["version"] == newest
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert "version" not in citation
    assert citation["license"] == [project["license"], "CC-BY-4.0"]
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert "CC BY 4.0" in (ROOT / "LICENSE-text").read_text()


def test_a_release_holds_the_figures_and_the_translations(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=ignored)
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist"]
    subprocess.run([*command, source], check=True, capture_output=True)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    held = set(ZipFile(wheel).namelist())
    package = source / "src" / "attention_book"
    kinds = {".py", ".js", ".css", ".json"}
    needed = [file for file in package.rglob("*") if file.suffix in kinds]
    assert {str(file.relative_to(source / "src")) for file in needed} <= held
    assert any(name.endswith("licenses/LICENSE") for name in held)


@pytest.fixture
def newest():
    text = (ROOT / ".github/workflows/newest.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["jobs"]["test"]


@pytest.mark.parametrize("ran", [True, False], ids=["checks ran", "nothing was installed"])
@pytest.mark.parametrize(("number", "asked"), [("", "create --title"), ("17", "comment 17")])
def test_what_newest_releases_break_is_said_in_the_issue_that_is_open_or_in_a_new_one(
    newest, tmp_path, number, asked, ran
):
    step = newest["steps"][-1]
    machine = Machine(tmp_path / "bin")
    machine.add("gh", f'[ "$2" = list ] && echo "{number}"; echo "$@" >> {tmp_path}/asked')
    if ran:
        (tmp_path / ".venv" / "bin").mkdir(parents=True)
        (tmp_path / ".venv" / "bin" / "pip").symlink_to(shutil.which("true"))
        (tmp_path / "test.log").write_text("it broke\n")
    environment = {**step["env"], "PATH": f"{machine.folder}:{os.environ['PATH']}"}
    said = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment)
    assert said.returncode == 0
    listed, told = (tmp_path / "asked").read_text().splitlines()
    assert step["env"]["TITLE"] in listed
    assert told.startswith(f"issue {asked}")
    assert ("it broke" in (tmp_path / "report.md").read_text()) is ran


def test_checks_that_hang_fail_before_the_job_is_cancelled_unsaid(newest):
    [checks] = [step for step in newest["steps"] if "make test" in step.get("run", "")]
    assert newest["steps"][-1]["if"] == "failure()"  # true after a step's limit, not the job's
    assert checks["timeout-minutes"] < newest["timeout-minutes"]


def test_building_again_starts_from_nothing_and_keeps_the_packed_editions(tmp_path):
    built = tmp_path / "_build"
    for folder in ("html", ".doctrees"):
        (built / folder).mkdir(parents=True)
        (built / folder / "gone").touch()
    (built / "book.zip").touch()
    tool("book").clear(built)
    assert [path.name for path in built.iterdir()] == ["book.zip"]
    tool("book").clear(tmp_path / "nothing built yet")


def test_a_package_that_states_no_licence_is_named(monkeypatch, capsys):
    licences = tool("licences")
    stating, silent = Message(), Message()
    stating["Name"], stating["License-Expression"] = "open", "MIT"
    silent["Name"] = "silent"
    code = [PurePosixPath("silent/__init__.py"), PurePosixPath("silent-1.dist-info/METADATA")]
    found = [SimpleNamespace(metadata=said, version="1", files=code) for said in (stating, silent)]
    monkeypatch.setattr(licences, "distributions", lambda: found)
    assert licences.main() == 1
    assert "without a stated licence: silent" in capsys.readouterr().out
    found[1].files = code[1:]  # as a package that only names others
    assert licences.main() == 0
    assert "holds nothing of its own" in capsys.readouterr().out
    found[1].files = code
    silent["License-File"] = "LICENSE"
    found[1].read_text = {"licenses/LICENSE": "Copyright\n\nThe Fair License\n"}.get
    assert licences.main() == 0
    assert "The Fair License" in capsys.readouterr().out
    monkeypatch.setattr(licences, "distributions", lambda: found[:1])
    assert licences.main() == 0


@pytest.mark.parametrize(
    ("table", "checked", "steady", "last"),
    [
        ("style  ok  [2 s]\ntests  7 passed in 1.2s  [2 s]", 0, 0, "9 passed, 0 failed"),
        (
            "style  failed  [2 s]\ntests  2 failed, 5 passed in 1s  [2 s]",
            1,
            0,
            "6 passed, 3 failed",
        ),
        ("style  ok  [2 s]\ntests  5 passed, 1 error in 1s  [2 s]", 1, 1, "6 passed, 2 failed"),
        ("style  ok  [2 s]\ntests  7 passed in 1.2s  [2 s]", 0, 1, "8 passed, 1 failed"),
        (None, 2, 2, "0 passed, 2 failed"),
    ],
)
def test_continuous_integration_counts_the_checks_and_the_gate(
    tmp_path, table, checked, steady, last
):
    if table:
        (tmp_path / "table").write_text(f"9 failed\n=== all parts ===\n{table}\n")
    make = tmp_path / "make"
    make.write_text(
        f"#!/bin/sh\ncase $1 in test) cat {tmp_path}/table; exit {checked};; esac\nexit {steady}\n"
    )
    make.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [ROOT / ".ci" / "run"], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert ran.stdout.splitlines()[-1] == last
    assert (ran.returncode == 0) == (checked == steady == 0)


def test_a_picture_with_a_palette_looks_the_same_and_stays_as_it_is():
    """A drawing whose edges have thousands of colours, over what is transparent."""
    levels = np.linspace(0, 255, 96, dtype=np.uint8)
    pixels = np.zeros((96, 2 * 96, 4), np.uint8)
    pixels[:, :96, 0], pixels[:, :96, 3] = levels, levels[:, None]  # each shade and strength once
    pixels[:, 96:] = 17, 119, 187, 255  # an area
    texts, drawn = PngInfo(), io.BytesIO()
    texts.add_text("Panels", "0.5")
    Image.fromarray(pixels).save(drawn, "PNG", pnginfo=texts)
    stored = base64.b64encode(drawn.getvalue()).decode()
    lighter = tool("palette").with_palette(stored)
    assert tool("palette").with_palette(lighter) == lighter
    with Image.open(io.BytesIO(base64.b64decode(lighter))) as picture:
        assert picture.mode == "P"
        assert picture.text["Panels"] == "0.5"
        made = np.asarray(picture.convert("RGBA"))
    assert (made[:, 96:] == pixels[:, 96:]).all()
    for ground in (0, 255):
        difference = _over(made, ground) - _over(pixels, ground)
        assert abs(difference).max() < 16  # of 256: measured 15.5, where drawings have 10


def _over(pixels: np.ndarray, ground: int) -> np.ndarray:
    """What is seen of pixels on a page of one shade."""
    strength = pixels[..., 3:] / 255
    return pixels[..., :3] * strength + ground * (1 - strength)
