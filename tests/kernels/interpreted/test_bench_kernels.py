"""The suite ``kernels`` at toy size: every part runs, and the suite yields every promised figure."""

from engine.bench.gpu.costs import Ceilings, Shape
from engine.bench.gpu.gpu_goals import kernel_goals
from engine.bench.gpu.kernels_suite import Sizes, parts
from engine.bench.gpu.parts import measure_all
from engine.bench.gpu.timing import Deadline

FOUND = Ceilings(bandwidth=1e9, rate=1e10)
TOY = Sizes(
    Shape("toy", 2, 32, 4, 2, 16, 48, 64, False), ((9, 40), (65, 40), (1, 0)), vocabulary=50
)


def test_every_part_runs():
    content = {"rows": [], "left_out": []}
    measure_all(parts(TOY, FOUND, Deadline(900)), Deadline(900), content)
    assert content["left_out"] == []
    assert not [key for row in content["rows"] for key in row if key.endswith("_problem")]
    assert all(goal.value is not None for goal in kernel_goals(content["rows"]))
    assert all(row["same"] for row in content["rows"] if row["name"].startswith("verify_tree"))
