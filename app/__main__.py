"""``python -m app`` starts the page, as ``python app.py`` does."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "app.py"), run_name="__main__")
