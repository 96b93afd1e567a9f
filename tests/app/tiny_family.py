"""The page whose real chat model is a tiny one: `python -m tests.app.tiny_family FAMILIES`, a folder of families."""

import sys
from pathlib import Path

import presets.families
import presets.fetched

presets.fetched.FAMILIES = Path(sys.argv[1])

if __name__ == "__main__":
    from app.page import build, launch
    from app.shutdown import end

    launch(build())
    end()
