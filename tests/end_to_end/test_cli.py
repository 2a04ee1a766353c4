"""The program as its users meet it: exit codes, output, and one clear error for each bad input."""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from cli_case import PROGRAM, WithServer, run


class Messages(WithServer):
    def test_listen_prints_what_publish_sent(self):
        listener = self.listener("cli.greeting", "--count", "2", "-o", "json", "--queue", "greet")
        self.assertEqual(run("publish", "cli.greeting", "--text", "hello", "--value", "4711", "--store", self.uri, "--queue", "greet", "--ttl", "60s")[0], 0)
        self.assertEqual(run("publish", "cli.greeting", "--file", "-", "--store", self.uri, "--queue", "greet", "--ttl", "60s", stdin='{"a.b": 1, "big": 9007199254740993}')[0], 0)
        out, _ = listener.communicate(timeout=30)
        self.assertEqual(listener.returncode, 0)
        messages = [json.loads(line) for line in out.splitlines()]
        by_text = sorted(messages, key=lambda m: "msg" not in m)
        self.assertEqual((by_text[0]["msg"], by_text[0]["value"], by_text[0]["topic"]), ("hello", "4711", "cli.greeting"))
        self.assertEqual(by_text[1]["map_value"], {"a.b": 1, "big": 9007199254740993})

    def test_request_prints_the_answer_of_a_command(self):
        script = pathlib.Path(tempfile.mkdtemp()) / "double.py"
        script.write_text('import json, sys\nm = json.load(sys.stdin)\nprint(json.dumps({"double": 2 * int(m["value"])}))\n')
        self.listener("cli.double", "--exec", f"{sys.executable} {script}", "--queue", "ask")
        code, out, err = run("request", "cli.double", "--value", "21", "--timeout", "20s", "-o", "json", "--store", self.uri, "--queue", "ask")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["map_value"], {"double": 42})

    def test_request_without_listener_ends_with_4(self):
        code, out, err = run("request", "cli.nobody", "--timeout", "300ms", "--store", self.uri, "--queue", "empty")
        self.assertEqual((code, out), (4, ""))
        self.assertIn("0 of 1 answers came within 300ms", err)

    def test_a_rejected_exclusive_message_comes_back_with_its_reason(self):
        flag = pathlib.Path(tempfile.mkdtemp()) / "seen"
        listener = self.listener("cli.twice", "--queue", "twice", "--exec",
                                 f'test -e {flag} && cat >{flag} || (touch {flag}; echo "not yet" >&2; exit 3)')
        code, _, err = run("publish", "cli.twice", "--exclusive", "--value", "x", "--store", self.uri, "--queue", "twice")
        self.assertEqual(code, 0, err)
        deadline = threading.Event()
        for _ in range(300):  # at most 30 s; another process writes the file
            if flag.exists() and flag.stat().st_size > 0:
                break
            deadline.wait(0.1)
        message = json.loads(flag.read_text())
        self.assertEqual((message["attempt"], message["last_error"]), (2, "not yet"))
        listener.terminate()

    def test_lines_and_whole_messages_are_counted(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        (folder / "lines.ndjson").write_text("".join('{"n": %d}\n' % i for i in range(1234)))
        (folder / "messages.ndjson").write_text('{"topic": "a", "value": null}\n\n{"topic": "b", "exclusive": true, "map_value": {"x": 1}}\n')
        code, out, _ = run("publish", "cli.lines", "--lines", str(folder / "lines.ndjson"), "--store", self.uri, "-o", "json", "--queue", "lines")
        self.assertEqual((code, json.loads(out)["published"]), (0, 1234))
        code, out, _ = run("publish", "--messages", str(folder / "messages.ndjson"), "--store", self.uri, "--queue", "lines")
        self.assertEqual((code, out.startswith("published 2 messages")), (0, True))

    def test_a_listener_whose_output_is_lost_stops_and_gives_the_message_back(self):
        place = ("--store", self.uri, "--queue", "lost")
        self.assertEqual(run("publish", "cli.lost", "--exclusive", "--value", "1", *place)[0], 0)
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "listen", "cli.lost", *place], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to stdout", done.stderr)
        report = json.loads(run("status", *place, "-o", "json", "--timeout", "10ms")[1])
        self.assertEqual(report["waiting"] + report["failed"], 1)

    def test_status_shows_nodes_and_what_waits(self):
        self.listener("cli.status", "--id", "lister", "--queue", "status")
        run("publish", "cli.work", "--exclusive", "--value", "1", "--store", self.uri, "--queue", "status")
        for _ in range(20):
            code, out, err = run("status", "--store", self.uri, "--queue", "status", "-o", "json", "--timeout", "500ms")
            self.assertEqual(code, 0, err)
            report = json.loads(out)
            if any(n["answered"] for n in report["nodes"]):
                break
        self.assertEqual([(n["id"], n["answered"], "cli.status" in n["topics"]) for n in report["nodes"]], [("lister", True, True)])
        self.assertEqual((report["waiting"], report["leased"], report["failed"]), (1, 0, 0))

    def test_doctor_finds_no_trouble_with_our_own_server(self):
        code, out, err = run("doctor", "--store", self.uri, "-o", "json")
        findings = {f["what"]: f for f in json.loads(out)["findings"]}
        self.assertEqual((code, [f for f in findings.values() if "trouble" in f]), (0, []), err)
        self.assertEqual(findings["change streams"]["value"], "yes")


class BadInput(WithServer):
    def bad(self, code, words, *arguments, stdin=""):
        got, out, err = run(*arguments, stdin=stdin)
        self.assertEqual(got, code, (arguments, out, err))
        for word in words if isinstance(words, tuple) else (words,):
            self.assertIn(word, err, arguments)
        self.assertNotIn("terminate called", err)

    def published(self):
        return json.loads(run("status", "--store", self.uri, "-o", "json", "--queue", "bad", "--timeout", "10ms")[1])

    def test_usage_errors_end_with_2(self):
        self.bad(2, "fly", "fly")
        self.bad(2, "topic", "publish")
        self.bad(2, ("--layout", "standard"), "listen", "t", "--layout", "pyramid")
        self.bad(2, "--output", "status", "-o", "xml")
        self.bad(2, ("500 parsecs", "250ms"), "request", "t", "--timeout", "500 parsecs", "--store", self.uri)

    def test_store_addresses(self):
        self.bad(2, ("'redis://x' is no store address", "embedded:DIR"), "publish", "t", "--store", "redis://x")
        self.bad(2, ("option", "durability=strict|periodic"), "publish", "t", "--store", "embedded:x?color=red")
        self.bad(2, ("names no host", "mongodb://host"), "doctor", "--store", "mongodb://")
        self.bad(2, "connection string is not valid", "status", "--store", "mongodb://a:b:c/x")
        self.bad(2, "connection string is not valid", "request", "t", "--store", "mongodb://127.0.0.1:99999/x")
        self.bad(3, "127.0.0.1:1", "publish", "t", "--store", "mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=500")

    def test_files(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        (folder / "broken.ndjson").write_text('{"topic": "t"}\n{"topic": "t"\n')
        (folder / "field.ndjson").write_text('{"topic": "t", "colour": 1}\n')
        (folder / "type.ndjson").write_text('{"topic": "t", "priority": "high"}\n')
        queue = ("--store", self.uri, "--queue", "bad")
        self.bad(1, ("broken.ndjson line 2", "1 messages were published before"), "publish", "--messages", str(folder / "broken.ndjson"), *queue)
        self.bad(1, ("line 1", "unknown field 'colour'", "allowed: topic"), "publish", "--messages", str(folder / "field.ndjson"), *queue)
        self.bad(1, ("line 1", "'priority' must be an integer"), "publish", "--messages", str(folder / "type.ndjson"), *queue)
        self.bad(1, "No such file", "publish", "t", "--file", str(folder / "none.json"), *queue)
        self.bad(1, "is a folder", "publish", "t", "--lines", str(folder), *queue)
        self.bad(1, "stdin", "publish", "t", "--file", "-", *queue, stdin="[1, 2]")
        self.bad(1, "is a folder", "publish", "t", "--file", str(folder), *queue)

    def test_topics(self):
        queue = ("--store", self.uri, "--queue", "bad")
        self.bad(2, "255", "publish", "t" * 256, *queue)
        self.bad(2, "control", "publish", "a\tb", *queue)
        self.bad(2, "255", "listen", "t" * 256, *queue)
        self.bad(2, "control", "request", "a\nb", *queue)

    def test_values_of_options(self):
        place = ("--store", self.uri)
        self.bad(2, ("--ttl", "'abc' is no duration", "250ms"), "publish", "t", "--ttl", "abc", *place)
        self.bad(2, ("--ttl", "too short"), "publish", "t", "--ttl", "0s", *place)
        self.bad(2, ("--exec-timeout", "'soon' is no duration"), "listen", "t", "--exec", "cat", "--exec-timeout", "soon", *place)
        self.bad(2, ("--timeout", "'never' is no duration"), "status", "--timeout", "never", *place)
        self.bad(2, ("queue", "without $"), "publish", "t", "--queue", "a$b", *place)
        self.bad(2, ("queue", "without $"), "doctor", "--queue", "a$b", *place)
        self.bad(2, ("id", "control"), "status", "--id", "a\tb", *place)
        self.bad(2, ("id", "255"), "request", "t", "--id", "i" * 256, *place)

    def test_text_that_is_not_utf8(self):
        for arguments in (("publish", "t", "--queue", b"q\xff"), ("status", "--queue", b"\xc3"), ("doctor", "--queue", b"\xff"),
                          ("listen", "t", "--id", b"\xed\xa0\x80"), ("publish", "t", "--id", b"\xff"), ("request", "t", "--to", b"\xff"),
                          ("publish", "t", "--text", b"\xff"), ("publish", "t", "--value", b"\xff"), ("listen", "t", "--answer", b"\xff"),
                          ("publish", b"\xff")):
            done = subprocess.run([PROGRAM, *arguments, "--store", self.uri], capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertIn(b"is not UTF-8", done.stderr, arguments)
            option = [a.encode() for a in arguments if isinstance(a, str) and a.startswith("--")] or [b"topic"]
            self.assertIn(option[0], done.stderr, arguments)

    def test_serve_refuses_other_addresses_than_loopback(self):
        self.bad(1, ("0.0.0.0", "loopback", "authentication"), "serve", "--memory", "--bind", "0.0.0.0", "--port", "0")

    def test_serve_says_when_the_port_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.bad(1, str(taken.getsockname()[1]), "serve", "--memory", "--port", str(taken.getsockname()[1]))

    def test_a_locked_folder_names_its_holder(self):
        self.bad(1, (str(self.server.process.pid), f"127.0.0.1:{self.server.port}"), "serve", "--data", self.server.data, "--port", "0")
        self.bad(1, str(self.server.process.pid), "publish", "t", "--store", f"embedded:{self.server.data}")

    def test_a_folder_that_cannot_be_made(self):
        self.bad(1, "/proc/angelia", "serve", "--data", "/proc/angelia", "--port", "0")


class Help(unittest.TestCase):
    def test_every_command_has_help_with_examples(self):
        _, out, _ = run("--help")
        commands = re.findall(r"^  (\w+) {2,}", out.split("Subcommands:")[1], re.M)
        self.assertEqual(sorted(commands), ["demo", "doctor", "listen", "publish", "request", "serve", "status", "version"])
        for command in commands:
            code, text, _ = run(command, "--help")
            self.assertEqual(code, 0)
            self.assertTrue("Examples:" in text or command == "version", command)

    def test_version(self):
        code, out, _ = run("version", "-o", "json")
        self.assertEqual((code, list(json.loads(out))), (0, ["version"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
