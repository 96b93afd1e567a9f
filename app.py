"""The page: python app.py, on port 7860 or GRADIO_SERVER_PORT. --methods DIR adds methods of one's own, --watch DIR lists
requests that a serving engine records there."""

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
