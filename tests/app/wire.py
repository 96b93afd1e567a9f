"""One visitor's connection to the page, which talks to the server as a browser does, but without a browser."""

import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from functools import cache

import httpx
from gradio_client.utils import apply_diff

PREFIX = "/gradio_api"
PATIENCE = httpx.Timeout(30.0, read=300.0)
Update = tuple[str | None, str, str]


@cache
def config(url: str) -> dict:
    """Return the page's own description of itself."""
    return httpx.get(f"{url}/config", timeout=PATIENCE).raise_for_status().json()


class Wire:
    """One tab of the page. Its heartbeat stays open until ``leave``; the end of the heartbeat tells the server that the
    tab was closed."""

    def __init__(self, url: str, address: str | None = None) -> None:
        """address: the one of this machine that the visitor comes from, for example 127.0.0.7."""
        self.url, self.session = url, uuid.uuid4().hex
        self.own = ""
        """The value of the section of own models and conversations, which a browser sends with every run."""
        self._config = config(url)
        self._ids = {
            one["props"]["elem_id"]: one["id"]
            for one in self._config["components"]
            if one["props"].get("elem_id")
        }
        self._streams: list[httpx.Response] = []
        self._heart: httpx.Response | None = None
        transport = httpx.HTTPTransport(verify=False, local_address=address)
        self._http = httpx.Client(base_url=url + PREFIX, timeout=PATIENCE, transport=transport)
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        try:
            with self._http.stream("GET", f"/heartbeat/{self.session}") as stream:
                self._streams.append(stream)
                self._heart = stream
                for _ in stream.iter_lines():
                    pass
        except (httpx.HTTPError, OSError, RuntimeError):
            pass

    def leave(self) -> None:
        """Close the tab, even while it is receiving an event."""
        for stream in self._streams:
            stream.close()
        self._http.close()

    def break_off(self) -> None:
        """Lose the heartbeat, as when the network breaks for a moment, and give the server time to notice."""
        while self._heart is None:
            time.sleep(0.05)
        stream = self._heart.extensions["network_stream"]
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        time.sleep(1.0)

    def event(self, elem_id: str, name: str) -> dict:
        """Return the event of this name of the component with this id."""
        component = self._ids[elem_id]
        return next(
            one for one in self._config["dependencies"] if [component, name] in one["targets"]
        )

    def send(self, event: dict, data: list, event_data: object = None) -> httpx.Response:
        """Put an event into the server's queue, or call it at once if it needs no queue."""
        body = {"fn_index": event["id"], "data": data, "session_hash": self.session}
        body |= {"event_data": event_data, "trigger_id": event["targets"][0][0]}
        return self._http.post("/queue/join", json=body)

    def hear(self, answer: httpx.Response) -> Iterator[list]:
        """Yield the outputs of the event each time they change. Raises RuntimeError if the event failed."""
        if answer.status_code != 200:
            raise RuntimeError(f"{answer.status_code}: {answer.text[:200]}")
        number, outputs = answer.json()["event_id"], None
        with self._http.stream(
            "GET", "/queue/data", params={"session_hash": self.session}
        ) as stream:
            self._streams.append(stream)
            for line in stream.iter_lines():
                if not line.startswith("data:"):
                    continue
                message = json.loads(line[5:])
                if message.get("event_id") not in (None, number):
                    continue
                kind, output = message["msg"], message.get("output") or {}
                if kind == "process_generating" and message["success"]:
                    fresh = output["data"]
                    outputs = fresh if outputs is None else list(map(apply_diff, outputs, fresh))
                    yield list(outputs)
                elif kind == "process_completed":
                    if not message["success"]:
                        raise RuntimeError(str(output.get("error"))[:200])
                    if outputs is None:
                        yield output["data"]
                    return
                elif kind in ("close_stream", "server_stopped", "unexpected_error"):
                    raise RuntimeError(message.get("message") or kind)

    def _updates(self, event: dict, data: list) -> Iterator[Update]:
        for picture, said, *_ in self.hear(self.send(event, data)):
            status = json.loads(said) if isinstance(said, str) else {"state": "", "message": ""}
            trace = picture if isinstance(picture, str) else None
            yield trace, status["state"], status["message"]

    def run(
        self, prompt: object, drafter: str = "chain", tokens: object = 16, **changes
    ) -> Iterator[Update]:
        """Press Run on Watch."""
        values = self.watch_values(prompt, drafter, tokens, **changes)
        return self._updates(self.event("run", "click"), [*values, self.own])

    def watch_values(
        self, prompt: object, drafter: object = "chain", tokens: object = 16, **changes
    ) -> list:
        pair = {"drafter": drafter, "options": {}, "verifier": "", "rule_options": {}}
        values = {"prompt": prompt, "heal": False, "pair": json.dumps(pair), "json_schema": ""}
        values |= {"python_names": False, "temperature": 0}
        values |= {"top_k": 0, "top_p": 1, "seed": 0, "max_new_tokens": tokens}
        values["models"] = ""
        return list((values | changes).values())

    def race(
        self, prompt: object, tokens: object = 16, drafters=("none", "chain", "prompt_lookup")
    ) -> Iterator[Update]:
        """Press Race on Compare."""
        lanes = [
            {"drafter": key, "options": {}, "verifier": "", "rule_options": {}} for key in drafters
        ]
        values = [prompt, json.dumps(lanes), 0, 0, 1, 0, tokens, "", self.own]
        return self._updates(self.event("race", "click"), values)

    def press(self, elem_id: str) -> Iterator[Update]:
        """Press this button while every control has its first value."""
        event = self.event(elem_id, "click")
        usual = {one["id"]: one["props"].get("value") for one in self._config["components"]}
        return self._updates(event, [usual[number] for number in event["inputs"]])

    def resume(self) -> Iterator[Update]:
        return self._updates(self.event("watch-status", "ask_resume"), [])

    def ask(self, what: str) -> None:
        """Ask the run under way to pause or stop, and ignore the answer."""
        event = self.event("watch-status", f"ask_{what}")
        body = {"fn_index": event["id"], "data": [], "session_hash": self.session}
        self._http.post(f"/run/{event['api_name']}", json=body)

    def at_once(self, elem_id: str, name: str, event_data: object) -> list:
        """Return the outputs of an event that needs no queue."""
        event = self.event(elem_id, name)
        body = {"fn_index": event["id"], "data": [], "session_hash": self.session}
        answer = self._http.post(
            f"/run/{event['api_name']}", json=body | {"event_data": event_data}
        )
        return answer.raise_for_status().json()["data"]

    def ready(self) -> None:
        """Wait until the models are loaded: make a first run to its end."""
        for _ in self.run("Once", "none", 1):
            pass
