"""The page as the tests serve it: python -m tests.app.quick_page, with the arguments of app.py. The speed of a run is measured
in two rounds, not until it settles, which would take a core after every run of a test. Where DRAFTSCOPE_TINY_FAMILIES names a
folder of families, the real chat model comes from there."""

import os
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported

import app.speed
import presets.fetched

FAMILIES = "DRAFTSCOPE_TINY_FAMILIES"

app.speed.LEAST, app.speed.ENOUGH = 2, 0.0
if FAMILIES in os.environ:
    presets.fetched.FAMILIES = Path(os.environ[FAMILIES])

if __name__ == "__main__":
    import app.__main__
