"""Starts and stops `angelia serve` for tests: a child process on a free loopback port, with a data folder of its own."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAM = os.environ["ANGELIA_PROGRAM"]


class Server:
    def __init__(self, *options):
        self.data = tempfile.mkdtemp(prefix="angelia-compat-")
        self.options = list(options)
        self.port = 0
        self.process = None

    def start(self):
        """Returns the URI once the server accepts connections; a restart takes the port of the first start."""
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.data, "--port", str(self.port), "--enable-test-commands", *self.options],
            stdout=subprocess.PIPE)
        line = self._first_line(timeout_s=30)
        self.uri = re.search(r"mongodb://\S+", line).group(0)
        self.port = int(re.search(r":(\d+)", self.uri.removeprefix("mongodb:")).group(1))
        return self.uri

    def _first_line(self, timeout_s):
        selector = selectors.DefaultSelector()
        selector.register(self.process.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + timeout_s
        text = b""
        while b"\n" not in text:
            if not selector.select(deadline - time.monotonic()):
                raise TimeoutError(f"no line from angelia serve within {timeout_s} s")
            chunk = os.read(self.process.stdout.fileno(), 4096)
            if not chunk:
                raise RuntimeError(f"angelia serve ended with {self.process.wait()}")
            text += chunk
        return text.decode()

    def kill(self):
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        self.process.stdout.close()
        return code

    def remove(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.data, ignore_errors=True)
