"""chromium.py - a headless Chromium that is driven over its debugging protocol."""

import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome")


def found():
    """The path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """A browser with one page.  `problems` collects what the page of the last `open` reported: console errors and
    warnings, exceptions, requests that failed, and requests to anything but `allowed`."""

    def __init__(self, allowed):
        self.allowed, self.problems, self.last = allowed, [], 0
        self.folder = tempfile.TemporaryDirectory(prefix="site-chromium-", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [found(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={self.folder.name}",
             "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = websocket.create_connection(self._address(), timeout=60)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    session = None

    def _address(self):
        file = pathlib.Path(self.folder.name, "DevToolsActivePort")
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"{found()} ended with {self.process.returncode}")
            if file.exists() and len(lines := file.read_text().split()) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            time.sleep(0.1)
        raise RuntimeError(f"{found()} opens no debugging port")

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self):
        answer = json.loads(self.socket.recv())
        self.note(answer.get("method"), answer.get("params", {}))
        return answer

    def note(self, event, data):
        if event == "Runtime.exceptionThrown":
            details = data["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif event == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in data["args"]))
        elif event == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{data['entry']['text']} {data['entry'].get('url', '')}")
        elif event == "Network.requestWillBeSent":
            url = data["request"]["url"]
            if not url.startswith((self.allowed, "data:", "blob:", "about:")):
                self.problems.append(f"a request to {url}")
        elif event == "Network.responseReceived" and data["response"]["status"] >= 400:
            self.problems.append(f"{data['response']['status']} {data['response']['url']}")
        elif event == "Page.loadEventFired":
            self.loaded = True

    def open(self, url):
        """Opens a page and waits until it is loaded; what it reported is in `problems`."""
        self.problems, self.loaded = [], False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.receive()
        self.evaluate("new Promise(done => setTimeout(done, 20))")  # what scripts do after loading

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        return result["result"].get("value")

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                  mobile=phone)

    def scheme(self, name):
        """light or dark, as a reader's system requests it."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()
