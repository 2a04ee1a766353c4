"""How the program ends when something around it does: its output, a command it runs, its user's patience, a right it lacks."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import pymongo
from cli_case import PROGRAM, Server, WithServer, run, wait_until


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def folder():
    return pathlib.Path(tempfile.mkdtemp())


class Commands(WithServer):
    """listen --exec"""

    def counts(self, queue):
        code, out, err = run("status", "--store", self.uri, "--queue", queue, "-o", "json", "--timeout", "10ms")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def stored(self, queue):
        with pymongo.MongoClient(self.uri) as client:
            return list(client["cli"]["mmsg_" + queue].find())

    def ask(self, command, queue, *options):
        """What a request gets that is answered by `command`."""
        self.listener("cli.ask", "--queue", queue, "--exec", command, *options)
        return run("request", "cli.ask", "--timeout", "20s", "-o", "json", "--store", self.uri, "--queue", queue)

    def test_too_much_output_is_rejected_and_not_cut(self):
        self.listener("cli.long", "--queue", "long", "--exec", f"{sys.executable} -c 'print(\"x\" * (15 * 1024 * 1024 + 1))'")
        self.assertEqual(run("publish", "cli.long", "--exclusive", "--store", self.uri, "--queue", "long")[0], 0)
        wait_until(lambda: any("last_error" in m for m in self.stored("long")))
        self.assertIn("15 MiB", self.stored("long")[0]["last_error"])
        self.assertIn("an answer has at most", self.stored("long")[0]["last_error"])

    def test_output_without_end_is_ended(self):
        self.listener("cli.endless", "--queue", "endless", "--exec", "yes")
        self.assertEqual(run("publish", "cli.endless", "--exclusive", "--store", self.uri, "--queue", "endless")[0], 0)
        wait_until(lambda: any("15 MiB" in m.get("last_error", "") for m in self.stored("endless")))

    def test_the_longest_output_is_answered(self):
        code, out, err = self.ask(f"{sys.executable} -c 'print(\"x\" * (15 * 1024 * 1024 - 1))'", "longest")
        self.assertEqual((code, len(json.loads(out)["msg"])), (0, 15 * 1024 * 1024 - 1), err)

    def test_an_object_too_long_for_a_document_is_rejected(self):
        numbers = f"{sys.executable} -c 'print(\"{{\\\"a\\\": [\" + \"1,\" * 2000000 + \"1]}}\")'"
        self.listener("cli.object", "--queue", "object", "--exec", numbers)
        self.assertEqual(run("publish", "cli.object", "--exclusive", "--store", self.uri, "--queue", "object")[0], 0)
        wait_until(lambda: any("15 MiB as BSON" in m.get("last_error", "") for m in self.stored("object")))

    def test_an_object_nested_too_deeply_is_rejected(self):
        self.listener("cli.deep", "--queue", "deep", "--exec", f"{sys.executable} -c 'print(\"{{\\\"a\\\": \" * 300 + \"1\" + \"}}\" * 300)'")
        self.assertEqual(run("publish", "cli.deep", "--exclusive", "--store", self.uri, "--queue", "deep")[0], 0)
        wait_until(lambda: any("the object that the command wrote" in m.get("last_error", "") for m in self.stored("deep")))

    def test_output_that_is_not_utf8_is_rejected(self):
        self.listener("cli.latin", "--queue", "latin", "--exec", r"printf '\351'")
        self.assertEqual(run("publish", "cli.latin", "--exclusive", "--store", self.uri, "--queue", "latin")[0], 0)
        wait_until(lambda: any("not UTF-8" in m.get("last_error", "") for m in self.stored("latin")))

    def test_a_reason_that_is_not_utf8_is_stored_readably(self):
        self.listener("cli.reason", "--queue", "reason", "--exec", r"printf 'caf\351' >&2; exit 1")
        self.assertEqual(run("publish", "cli.reason", "--exclusive", "--store", self.uri, "--queue", "reason")[0], 0)
        wait_until(lambda: any(m.get("last_error") == "caf?" for m in self.stored("reason")))

    def test_a_child_in_the_background_does_not_hold_the_answer(self):
        start = time.monotonic()
        code, out, err = self.ask("sleep 100 & echo ok", "background", "--exec-timeout", "60s")
        self.assertEqual((code, json.loads(out)["msg"]), (0, "ok"), err)
        self.assertLess(time.monotonic() - start, 30)

    def test_a_command_that_closed_its_outputs_is_still_waited_for(self):
        self.listener("cli.closed", "--queue", "closed", "--exec-timeout", "300ms", "--exec", "exec >&- 2>&-; sleep 100")
        self.assertEqual(run("publish", "cli.closed", "--exclusive", "--store", self.uri, "--queue", "closed")[0], 0)
        wait_until(lambda: any("longer than 300ms" in m.get("last_error", "") for m in self.stored("closed")))

    def test_a_broken_pipe_inside_the_command_ends_its_writer_silently(self):
        code, out, err = self.ask("yes | head -n 1", "pipe")
        self.assertEqual((code, json.loads(out)["msg"]), (0, "y"), err)

    def end_by(self, number, command, queue):
        """(listener, seconds until its end) when a signal comes while `command` runs, which writes the pids that must end."""
        pids = folder() / "pids"
        listener = self.listener("cli.stop", "--queue", queue, "--exec", command.format(pids=pids))
        self.assertEqual(run("publish", "cli.stop", "--exclusive", "--store", self.uri, "--queue", queue)[0], 0)
        wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        start = time.monotonic()
        listener.send_signal(number)
        _, err = listener.communicate(timeout=30)
        self.assertIn("1 running commands were ended", err)
        for pid in pids.read_text().split():
            wait_until(lambda: not alive(int(pid)))
        return listener.returncode, time.monotonic() - start

    def test_ctrl_c_ends_the_running_command_and_gives_the_message_back(self):
        code, seconds = self.end_by(signal.SIGINT, "sleep 100 & echo $$ $! >{pids}; wait", "interrupted")
        self.assertEqual(code, 130)
        self.assertLess(seconds, 8)
        (message,) = self.stored("interrupted")
        self.assertEqual((message["leased_by"], "last_error" in message), (None, False))
        self.assertEqual(self.counts("interrupted")["waiting"], 1)

    def test_a_command_that_ignores_sigterm_is_killed(self):
        code, seconds = self.end_by(signal.SIGTERM, "trap '' TERM; echo $$ >{pids}; while :; do sleep 0.1; done", "stubborn")
        self.assertEqual(code, 143)
        self.assertLess(seconds, 8)
        self.assertEqual(self.counts("stubborn")["waiting"], 1)

    def test_a_second_ctrl_c_ends_at_once(self):
        pids = folder() / "pids"
        listener = self.listener("cli.twice", "--queue", "impatient", "--exec", f"trap 'echo x >>{pids}.term' TERM; echo $$ >{pids}; while :; do sleep 0.1; done")
        self.assertEqual(run("publish", "cli.twice", "--exclusive", "--store", self.uri, "--queue", "impatient")[0], 0)
        wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        listener.send_signal(signal.SIGINT)
        wait_until(lambda: pathlib.Path(f"{pids}.term").exists())
        listener.send_signal(signal.SIGINT)
        self.assertEqual(listener.wait(5), 130)
        wait_until(lambda: not alive(int(pids.read_text())))

    def test_a_listener_at_rest_ends_well(self):
        listener = self.listener("cli.rest", "--queue", "rest", "--id", "resting")
        wait_until(lambda: any(n["answered"] for n in self.counts_of_nodes("rest")))
        listener.send_signal(signal.SIGTERM)
        self.assertEqual(listener.wait(20), 0)

    def counts_of_nodes(self, queue):
        return json.loads(run("status", "--store", self.uri, "--queue", queue, "-o", "json", "--timeout", "300ms")[1])["nodes"]

    def test_a_listener_ended_before_its_count_says_so(self):
        listener = self.listener("cli.count", "--queue", "count", "--count", "2")
        wait_until(lambda: self.counts_of_nodes("count"))
        listener.send_signal(signal.SIGINT)
        _, err = listener.communicate(timeout=20)
        self.assertEqual(listener.returncode, 130)
        self.assertIn("stopped after 0 of 2 messages", err)

    def test_an_interrupted_request_leaves_no_participant(self):
        request = subprocess.Popen([PROGRAM, "request", "cli.nobody", "--timeout", "60s", "--id", "asker", "--store", self.uri, "--queue", "asked"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(request.kill)
        wait_until(lambda: self.stored("asked"))
        request.send_signal(signal.SIGINT)
        _, err = request.communicate(timeout=20)
        self.assertEqual(request.returncode, 130, err)
        self.assertEqual([n["id"] for n in self.counts_of_nodes("asked")], [])


class Publishing(WithServer):
    def publisher(self, queue, *arguments):
        process = subprocess.Popen([PROGRAM, "publish", "cli.lines", "--lines", "-", "--store", self.uri, "--queue", queue, *arguments],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def stored(self, queue):
        with pymongo.MongoClient(self.uri) as client:
            return client["cli"]["mmsg_" + queue].count_documents({})

    def test_ctrl_c_says_how_many_were_published(self):
        publisher = self.publisher("broken_off", "--ttl", "1h")
        publisher.stdin.write("{}\n" * 1234)
        publisher.stdin.flush()
        wait_until(lambda: self.stored("broken_off") == 1000)
        publisher.send_signal(signal.SIGINT)
        _, err = publisher.communicate(timeout=30)
        self.assertEqual(publisher.returncode, 130)
        self.assertIn("1000 messages were published before signal 2, up to line 1000", err)
        self.assertEqual(self.stored("broken_off"), 1000)

    def test_what_a_failed_batch_stored_is_counted(self):
        with pymongo.MongoClient(self.uri) as client:
            client["cli"]["mmsg_part"].create_index("map_value.n", unique=True)
        code, _, err = run("publish", "cli.lines", "--lines", "-", "--store", self.uri, "--queue", "part", "--ttl", "1h", stdin='{"n": 1}\n{"n": 1}\n{"n": 2}\n')
        self.assertEqual(code, 1)
        self.assertIn("2 messages were published before this error", err)
        self.assertEqual(self.stored("part"), 2)

    def without_index_rights(self, queue, failure):
        with pymongo.MongoClient(self.uri) as client:
            client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data={"failCommands": ["createIndexes"], **failure})
            try:
                return run("publish", "cli.indexes", "--value", "1", "--ttl", "1h", "--store", self.uri, "--queue", queue)
            finally:
                client.admin.command("configureFailPoint", "failCommand", mode="off")

    def test_no_right_to_make_indexes_does_not_keep_from_publishing(self):
        for queue, failure in (("unauthorized", {"errorCode": 13}), ("shutdown", {"errorCode": 91}), ("cut", {"closeConnection": True})):
            code, out, err = self.without_index_rights(queue, failure)
            self.assertEqual((code, out.startswith("published ")), (0, True), err)
            self.assertIn(f"indexes of collection cli.mmsg_{queue} could not be made", err)
            self.assertEqual(self.stored(queue), 1)


class LostOutput(WithServer):
    def lost(self, *arguments):
        """Every way of losing stdout: exit code 1, and stderr says it."""
        reader, writer = os.pipe()
        os.close(reader)
        with open("/dev/full", "w") as full, open(writer, "w") as unread:
            ways = {"full": full, "without reader": unread, "closed": None}
            for way, stdout in ways.items():
                command = [PROGRAM, *arguments] if stdout else ["bash", "-c", 'exec "$@" >&-', "bash", PROGRAM, *arguments]
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 1, (way, arguments, done.stderr))
                self.assertIn("cannot write to stdout", done.stderr, (way, arguments))

    def test_commands_that_only_print_fail(self):
        self.lost("version")
        self.lost("version", "-o", "json")
        self.lost("--version")
        self.lost("--help")
        self.lost("publish", "--help")
        self.lost("status", "--timeout", "10ms", "--store", self.uri)
        self.lost("status", "--timeout", "10ms", "-o", "json", "--store", self.uri)
        self.lost("doctor", "--store", self.uri)
        self.lost("doctor", "-o", "json", "--store", self.uri)

    def test_a_publisher_says_on_stderr_what_it_published(self):
        self.lost("publish", "cli.lost", "--store", self.uri, "--queue", "lost")
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "publish", "cli.lost", "--store", self.uri, "--queue", "lost"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertRegex(done.stderr, "angelia: published [0-9a-f]{24}")

    def test_a_server_whose_address_nobody_sees_ends(self):
        self.lost("serve", "--memory", "--port", "0")

    def test_no_file_gets_the_number_of_a_closed_stream(self):
        data = folder()
        done = subprocess.run(["bash", "-c", f"'{PROGRAM}' serve --data '{data}/d' --port 0 <&- >&- 2>&-"], timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([f for f in data.rglob("*") if f.is_file() and b" serves " in f.read_bytes()], [])
        self.assertEqual(run("status", "--store", f"embedded:{data}/d", "--timeout", "10ms")[0], 0)

    def test_stderr_that_is_full_changes_nothing(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "fly"], stdout=subprocess.PIPE, stderr=full, timeout=60)
        self.assertEqual(done.returncode, 2)


class LostInput(WithServer):
    def test_closed_stdin_is_no_empty_file(self):
        for arguments in ("t --lines -", "--messages -", "t --file -"):
            done = subprocess.run(["bash", "-c", f"'{PROGRAM}' publish {arguments} --store '{self.uri}' --queue input <&-"],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (1, ""), arguments)
            self.assertIn("cannot read stdin", done.stderr)

    def test_a_folder_as_stdin(self):
        done = subprocess.run(["bash", "-c", f"'{PROGRAM}' publish t --lines - --store '{self.uri}' --queue input </tmp"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdin is a folder", done.stderr)

    def test_input_without_end_is_refused(self):
        for arguments in (["--file", "/dev/zero"], ["--lines", "/dev/zero"]):
            code, _, err = run("publish", "t", *arguments, "--store", self.uri, "--queue", "input")
            self.assertEqual(code, 1, err)
            self.assertIn("longer than 64 MiB", err)

    def test_lines_without_a_last_end_of_line_and_over_many_reads(self):
        text = "\n".join('{"n": %d, "fill": "%s"}' % (i, "x" * (i * 700 % 5000)) for i in range(2000))
        code, out, err = run("publish", "t", "--lines", "-", "-o", "json", "--store", self.uri, "--queue", "many", stdin=text)
        self.assertEqual((code, json.loads(out)["published"]), (0, 2000), err)


class LostServer(unittest.TestCase):
    def test_a_listener_ends_soon_although_its_server_is_gone(self):
        server = Server()
        uri = server.start()
        self.addCleanup(server.remove)
        listener = subprocess.Popen([PROGRAM, "listen", "t", "--store", uri], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (listener.kill(), listener.communicate()))
        wait_until(lambda: json.loads(run("status", "--store", uri, "-o", "json", "--timeout", "300ms")[1])["nodes"])
        server.kill()
        start = time.monotonic()
        listener.send_signal(signal.SIGTERM)
        listener.communicate(timeout=30)
        self.assertEqual(listener.returncode, 0)
        self.assertLess(time.monotonic() - start, 15)


if __name__ == "__main__":
    unittest.main(verbosity=2)
