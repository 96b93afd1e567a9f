"""Families by name: on the command line, in the list, and one whose target has yet to be fetched."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.errors import UserError
from engine.parts import size_limits
from engine.parts.loading import load_models
from presets import asked, families, family, fetched
from presets.__main__ import main as presets_main
from presets.families import title
from presets.fetched import check_there, root
from tests.engine.tiny_gguf import source_toml, write_wheel

ROOT = Path(__file__).resolve().parents[2]
NAME = "smollm2"


@pytest.fixture
def tiny(tmp_path, monkeypatch, uncompiled):
    """Let the family's target be a tiny model in a wheel of the test's own. Returns its source."""
    shop, folder = tmp_path / "shop", tmp_path / "families" / NAME
    shop.mkdir()
    folder.mkdir(parents=True)
    source = write_wheel(shop)
    (folder / "source.toml").write_text(source_toml(source))
    monkeypatch.setattr(fetched, "FAMILIES", folder.parent)
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shop))
    fetched.sources.cache_clear()
    yield source
    fetched.sources.cache_clear()


def run(*arguments: str) -> int:
    return main(["run", "--drafter", "none", "--max-new-tokens", "5", *arguments])


def test_make_real_fetches_and_the_name_is_a_target(tiny, capsys):
    assert run("--target", NAME, "--prompt", "the") == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "`make real`" in told and " MB)" in told
    assert not root().exists(), "nothing is fetched without being asked"
    assert presets_main(["real"]) == 0
    place = capsys.readouterr().out.split(": ")[1].strip()
    assert Path(place).is_dir() and family(NAME).target == place
    assert presets_main(["real"]) == 0
    assert run("--target", NAME, "--chat", "--prompt", "the") == 0
    assert capsys.readouterr().out
    assert run("--target", NAME, "--drafter", "medusa", "--prompt", "the") == 2
    assert "needs a set of Medusa heads" in capsys.readouterr().err
    assert run("--target", NAME, "--drafter", "chain", "--prompt", "the") == 2
    assert "trained for another target" in capsys.readouterr().err, "than this tiny one"


def test_a_prompt_beyond_the_context_is_one_sentence(tiny, capsys, tmp_path):
    assert presets_main(["real"]) == 0
    (tmp_path / "long.txt").write_text("x " * 600)
    capsys.readouterr()
    assert run("--target", NAME, "--prompt-file", str(tmp_path / "long.txt")) == 2
    told = capsys.readouterr().err
    assert "the context of Tiny-Chat holds 512" in told and told.count("\n") == 1


def test_too_little_memory_is_told_before_loading(tiny, monkeypatch):
    fetched.fetch(NAME)
    monkeypatch.setattr(size_limits, "free_bytes", lambda: 1000)
    with pytest.raises(UserError, match=r"Tiny-Chat needs \d.* GB of memory; 0\.00 GB are free\."):
        load_models(family(NAME), {})


def test_a_host_can_switch_it_off(tiny, monkeypatch, capsys):
    monkeypatch.setenv("DRAFTSCOPE_REAL_MODELS", "off")
    assert NAME not in families()
    assert run("--target", NAME, "--prompt", "the") == 2
    assert presets_main(["real"]) == 2
    assert capsys.readouterr().err.count("switched off") == 2


def test_a_host_can_name_its_folder(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFTSCOPE_REAL_MODELS", str(tmp_path / "baked"))
    place = fetched.fetch(NAME)
    assert place.is_relative_to(tmp_path / "baked")
    check_there(NAME)


def test_embedded_families_are_targets_by_name(capsys, tmp_path, monkeypatch):
    assert run("--target", "hybrid", "--prompt", "Once upon") == 0
    assert capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hybrid").mkdir()
    assert run("--target", "hybrid", "--prompt", "Once upon") == 2, "a directory comes first"


def test_the_list_names_them(capsys):
    assert main(["list", "--json"]) == 0
    told = {one["name"]: one for one in json.loads(capsys.readouterr().out)["models"]}
    assert list(told) == families() and {"", NAME, "hybrid", "image"} <= set(told)
    assert told[""]["here"] and "draft" in told["hybrid"]["parts"]
    assert told["experts"]["parts"] == told["experts-topk"]["parts"] == ["draft"]
    assert main(["list"]) == 0
    assert title(NAME) in capsys.readouterr().out


def test_the_prompt_of_a_family_that_converses_is_a_turn():
    assert asked(NAME, "Hello") == {
        "prompt": "",
        "messages": [{"role": "user", "content": "Hello"}],
    }
    assert asked("", "Hello") == asked("hybrid", "Hello") == {"prompt": "Hello"}


def test_a_model_is_fetched_without_torch(tiny):
    """The process beside a server needs little memory."""
    program = (
        "import sys, json; from pathlib import Path; from engine.parts.fetched_model import *\n"
        f"fetch(Source.read(json.loads({json.dumps(json.dumps(asdict(tiny)))})), Path({str(root())!r}))\n"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
