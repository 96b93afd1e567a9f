"""Exported settings are accepted by vLLM's own class for them, where DRAFTSCOPE_VLLM names a Python that has vLLM
(`make serving-test`)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.bridges.exporting import export
from presets import family
from tests.bridges.settings import setting

PYTHON = os.environ.get("DRAFTSCOPE_VLLM", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="vLLM is not here; `make serving-test` installs it"
)


def changed(part: str, copy: Path, **entries) -> str:
    """Return a copy of a part under the names that vLLM knows. ``inspect`` reports both names as traps."""
    folder = Path(shutil.copytree(part, copy))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | entries))
    return str(folder)


def test_vllm_takes_what_is_written_for_it(tmp_path):
    models = family()
    draft = models.parts["draft"]
    chain = [
        setting(checkpoint=draft),
        setting(checkpoint=draft, temperature=0.8, verifier="rejection", off_above=9),
        setting(checkpoint=draft, temperature=0.8, verifier="block"),
    ]
    cell = changed(models.parts["eagle"], tmp_path / "eagle", architectures=["LlamaForCausalLM"])
    filler = changed(models.parts["diffusion"], tmp_path / "dflash", model_type="qwen3")
    eagle = setting("eagle", options={"top_k": 1}, checkpoint=cell, eagle3=False)
    block = setting("dflash", 7, checkpoint=filler)
    lookup = setting("prompt_lookup", 6, options={"max_ngram": 4, "min_ngram": 2})
    given = [*chain, eagle, block, lookup]
    found = [export(each, "vllm") for each in given]
    texts = [each.text for each in found] + [each.synthetic for each in found if each.synthetic]
    asked = json.dumps({"target": models.target, "settings": texts})
    script = Path(__file__).with_name("vllm_checking.py")
    run = subprocess.run(
        [PYTHON, str(script)], input=asked, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    told = json.loads(run.stdout.splitlines()[-1])
    assert told == [
        {"method": json.loads(text)["method"], "tokens": json.loads(text)["num_speculative_tokens"]}
        for text in texts
    ]
