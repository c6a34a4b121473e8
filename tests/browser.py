"""A real browser for tests: Chromium without a window, driven over the DevTools protocol through
two pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# the protocol is spoken on descriptors 3 and 4, which the pipes must be moved to without treading
# on each other
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
for end, wanted in zip(ends, (3, 4)):
    os.dup2(end, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        found = shutil.which(name)
        if found:
            return found
    return None


class Browser:
    """One page.

    ``problems`` holds what it complained about: exceptions, console errors, refused requests.
    """

    def __init__(self, folder: Path, executable: str, width: int = 1280, height: int = 900):
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()
        options = (
            "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
            "--disable-component-update "
            "--disable-sync --disable-extensions --mute-audio --remote-debugging-pipe "
            f"--window-size={width},{height}"
        ).split()
        words = [executable, *options, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(to_child), str(from_child), *words],
            pass_fds=(to_child, from_child),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer, self._count, self._session, self._events = b"", 0, None, []
        self.problems: list[str] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        target = next(
            t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"
        )
        self._session = self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._in, 1 << 20)
            if not more:
                raise EOFError("the browser is gone")
            self._buffer += more
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        request = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._out, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            message = self._read(deadline)
            if message.get("id") == self._count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._hear(message)

    def _hear(self, event: dict[str, Any]) -> None:
        self._events.append(event.get("method"))
        about = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(about["exceptionDetails"])[:600])
        elif event.get("method") == "Log.entryAdded" and about["entry"]["level"] in (
            "error",
            "warning",
        ):
            self.problems.append(about["entry"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and about["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.problems.append(str(about["args"]))
        elif event.get("method") == "Network.requestWillBeSent" and not about["request"][
            "url"
        ].startswith("file:"):
            self.problems.append(f"asked for {about['request']['url']}")

    def resize(self, width: int, height: int, *, dark: bool = False, touch: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def open(self, path: Path) -> None:
        self._events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + 60
        while "Page.loadEventFired" not in self._events:
            self._hear(self._read(deadline))

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def middle(self, selector: str) -> tuple[float, float]:
        """Of an element, scrolled into view."""
        where = self.ask(
            f"(() => {{ const e = document.querySelector({selector!r});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / "
            "2]; })()"
        )
        return where[0], where[1]

    def click(self, selector: str) -> None:
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def tap(self, selector: str) -> None:
        x, y = self.middle(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def swipe(self, selector: str, by: float) -> None:
        x, y = self.middle(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        for k in range(1, 5):
            self.call(
                "Input.dispatchTouchEvent",
                type="touchMove",
                touchPoints=[{"x": x + by * k / 4, "y": y}],
            )
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        try:
            self._session = None
            self.call("Browser.close")
        except (OSError, EOFError, TimeoutError, RuntimeError):
            self._process.kill()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
