"""What the tests of the program share: running it, a server, a listener."""

import os
import pathlib
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "compat" / "python"))
from angelia_server import PROGRAM, Server  # noqa: E402


def run(*arguments, stdin="", timeout=60, **environment):
    """(exit code, stdout, stderr)"""
    done = subprocess.run([PROGRAM, *arguments], input=stdin, text=True, capture_output=True, timeout=timeout,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def wait_until(true, timeout_s=30):
    """Waits for what another process does."""
    pause, deadline = threading.Event(), time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come true within {timeout_s} s")
        pause.wait(0.02)


class WithServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.uri = cls.server.start().replace("/?", "/cli?")

    @classmethod
    def tearDownClass(cls):
        cls.server.remove()

    def listener(self, *arguments):
        """A listening process; ends with the test."""
        process = subprocess.Popen([PROGRAM, "listen", "--store", self.uri, *arguments], text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process
