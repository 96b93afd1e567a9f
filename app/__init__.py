"""The web page. The only place that imports gradio."""
