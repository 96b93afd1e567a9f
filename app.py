"""The page: python app.py, on port 7860 or GRADIO_SERVER_PORT."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported

from app.page import build, launch
from app.shutdown import end

demo = build()

if __name__ == "__main__":
    launch(demo)
    end()
