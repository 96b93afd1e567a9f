"""OpenVINO GenAI as a peer for ``bench --peer openvino``: the engine that a user of a CPU would install instead.

It runs in an environment of its own (``make openvino-peer``), because its exporter needs an older transformers. It
answers over pipes: a request and its answer are one line of JSON each.
"""
