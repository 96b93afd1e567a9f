"""The recipe of the scaling law: the fit, the plan of the drafts, and a small run that is stopped and goes on."""

import json
import math

import pytest

from engine.training import scylla
from engine.training.__main__ import main
from engine.training.scylla import FACTORS, fitted


def acceptance(point):
    return -0.4 + 0.11 * math.log10(point["parameters"]) + 0.05 * math.log10(point["tokens"])


def points(noise=0.0):
    found = []
    for number, ((width, layers), tokens, rows) in enumerate(scylla.plan(800_000)):
        point = {"parameters": 4096 * width * layers, "tokens": tokens, "batch": 256 * rows}
        bent = noise * (-1) ** number
        found.append({**point, "acceptance": acceptance(point) + bent})
    return found


def test_every_batch_meets_every_size_and_every_length():
    *square, last = scylla.plan(800_000)
    assert len(square) == 9
    for factor in (0, 1):
        assert len({(draft[factor], draft[2]) for draft in square}) == 9
    assert all(last[0] > draft[0] and last[1] > draft[1] for draft in square)


def test_the_fit_finds_a_law_that_is_there():
    law = fitted(points()[:-1])
    assert law.slopes == pytest.approx({"parameters": 0.11, "tokens": 0.05, "batch": 0.0}, abs=1e-9)
    assert law.r2 == pytest.approx(1.0) and tuple(law.slopes) == FACTORS
    found = scylla.judged(points())
    assert found["predicted"] == pytest.approx(found["held_out"]["acceptance"])
    noisy = scylla.judged(points(0.02))
    assert 0.5 < noisy["law"]["r2"] < 0.99
    error = noisy["predicted"] - noisy["held_out"]["acceptance"]
    assert f"error {error:+.4f}" in noisy["told"][1] and abs(error) > 0.001
    with pytest.raises(ValueError, match="do not determine"):
        fitted([{**point, "batch": 512} for point in points()[:-1]])


def test_a_small_run_is_stopped_and_goes_on(ready, monkeypatch, capsys):
    path, given = ready
    monkeypatch.setattr(scylla, "SHAPES", ((8, 1), (12, 1), (16, 1), (20, 1)))
    short = ["--tokens", "1024", "--length", "32", *given]
    trained, fit = [], scylla.fit

    def counting(*arguments, **named):
        if len(trained) == 4:
            trained.append("stop")
            raise KeyboardInterrupt
        trained.append(arguments[2].tokens)
        fit(*arguments, **named)

    monkeypatch.setattr(scylla, "fit", counting)
    with pytest.raises(KeyboardInterrupt):
        main(["scylla", *short])
    (log,) = path.rglob("scylla.json")
    kept = json.loads(log.read_text())
    assert kept["about"] | {"target": ""} == {"target": "", "tokens": 1024, "window": 32, "seed": 0}
    batches = [rows * kept["about"]["window"] for *_, rows in scylla.plan(1024)]
    assert [point["batch"] for point in kept["points"]] == batches[:4], "tokens of a step"
    assert main(["scylla", *short]) == 0
    assert len(trained) == 11, "those that were done were not done again"
    told = capsys.readouterr().out
    found = json.loads((path / "models" / "parts" / "scylla" / "config.json").read_text())
    assert len(found["points"]) == 9 and found["held_out"]["tokens"] == 1024
    assert "R² = " in told and "held out: predicted" in told
    assert len({point["parameters"] for point in found["points"]}) == 3
    assert all(0 < point["acceptance"] < 1 for point in found["points"])
