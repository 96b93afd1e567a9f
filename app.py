"""The page: python app.py, on port 7860 or GRADIO_SERVER_PORT."""

from app.page import build, launch

demo = build()

if __name__ == "__main__":
    launch(demo)
