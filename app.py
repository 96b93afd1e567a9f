"""Starts the page: ``python app.py`` serves it on port 7860, or on GRADIO_SERVER_PORT.

``--methods DIR`` adds the host's own methods; ``--watch DIR`` lists the requests that a serving engine records in DIR.
"""

import os
import sys

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported

from app.settings import model_paths, take_folders
from engine.errors import UserError

try:
    take_folders(sys.argv[1:] if __name__ == "__main__" else ())
    model_paths()  # refuses a target that the page cannot run
except UserError as error:
    sys.exit(f"error: {error}")

from app.page import build, launch
from app.shutdown import end

demo = build()

if __name__ == "__main__":
    launch(demo)
    end()
