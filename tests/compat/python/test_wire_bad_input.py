"""Malformed and over-sized messages against `angelia serve` from outside, through raw sockets. Every one of them carries or follows an
insert: afterwards the server still serves, and nothing of it is there."""

import socket
import struct
import unittest

import bson
import pymongo
from bson import encode

from angelia_server import Server

OP_MSG = 2013
MAX_DOCUMENT = 16 * 1024 * 1024


def framed(payload, opcode=OP_MSG, length=None, request_id=7):
    return struct.pack("<iiii", len(payload) + 16 if length is None else length, request_id, 0, opcode) + payload


def op_msg(document, flags=0, tail=b""):
    return framed(struct.pack("<I", flags) + b"\0" + (document if isinstance(document, bytes) else encode(document)) + tail)


def insert(collection="things", **more):
    return {"insert": collection, "documents": [{"_id": 1}], "$db": "bad", **more}


def raw_document(fields):
    """A document from the bytes of its fields, however large."""
    return struct.pack("<i", len(fields) + 5) + fields + b"\0"


def raw_field(kind, name, value):
    return bytes([kind]) + name.encode() + b"\0" + value


def raw_string(size):
    return struct.pack("<i", size + 1) + b"x" * size + b"\0"


def insert_of(document_bytes):
    """An insert whose only document is given as bytes, in a sequence as drivers send it."""
    body = encode({"insert": "things", "$db": "bad"})
    sequence = b"documents\0" + document_bytes
    return framed(struct.pack("<I", 0) + b"\0" + body + b"\1" + struct.pack("<i", len(sequence) + 4) + sequence)


def nested(levels):
    document = b"\x05\0\0\0\0"
    for _ in range(levels):
        document = raw_document(raw_field(3, "a", document))
    return document


class WireBadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = pymongo.MongoClient(cls.server.start(), serverSelectionTimeoutMS=10_000)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.remove()

    def tearDown(self):
        """Whatever a test sent: the server serves, and nothing was applied."""
        self.assertEqual(self.client.admin.command("ping")["ok"], 1)
        self.assertNotIn("bad", self.client.list_database_names())
        self.assertIsNone(self.server.process.poll())

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.addCleanup(connection.close)
        return connection

    def receive(self, connection):
        """The reply's document; None when the server closed."""
        try:
            head = connection.recv(16, socket.MSG_WAITALL)
            if len(head) < 16:
                return None
            length = struct.unpack("<i", head[:4])[0]
            return bson.decode(connection.recv(length - 16, socket.MSG_WAITALL)[5:])
        except ConnectionResetError:
            return None

    def answer(self, message):
        connection = self.connect()
        try:
            connection.sendall(message)
        except (ConnectionResetError, BrokenPipeError):
            pass  # closed while we were still sending: receive() sees what it said before
        return self.receive(connection)

    def assert_refused(self, message, code_name):
        reply = self.answer(message)
        self.assertIsNotNone(reply)
        self.assertEqual((reply["ok"], reply["codeName"]), (0, code_name), reply)
        self.assertTrue(reply["errmsg"])
        return reply

    def test_impossible_lengths_close_the_connection(self):
        whole = op_msg(insert())
        for length in (-1, 0, 15, 48_000_001, 0x7FFFFFFF):
            self.assertIsNone(self.answer(struct.pack("<i", length) + whole[4:]), length)

    def test_a_length_that_is_too_short_cuts_the_insert(self):
        whole = op_msg(insert())
        for length in range(17, len(whole)):
            with self.subTest(length=length):
                reply = self.answer(struct.pack("<i", length) + whole[4:length])
                self.assertEqual(reply["ok"], 0)

    def test_a_message_that_never_ends_is_not_applied(self):
        whole = op_msg(insert())
        for size in (1, 15, 16, 20, len(whole) - 1):
            connection = self.connect()
            connection.sendall(whole[:size])
            connection.shutdown(socket.SHUT_WR)
            self.assertIsNone(self.receive(connection))

    def test_unknown_opcodes_close_the_connection(self):
        for opcode in (0, 1, 2001, 2002, 2006, 2012, 9999, -5):
            self.assertIsNone(self.answer(framed(b"\0\0\0\0bad.things\0" + encode({"_id": 1}), opcode=opcode)), opcode)

    def test_unknown_required_flags_are_refused(self):
        for bit in (2, 7, 15):
            self.assert_refused(op_msg(insert(), flags=1 << bit), "IllegalOpMsgFlag")

    def test_a_wrong_checksum_is_refused(self):
        payload = struct.pack("<I", 1) + b"\0" + encode(insert())
        self.assert_refused(framed(payload + b"\1\2\3\4"), "ChecksumMismatch")

    def test_a_second_body_is_refused(self):
        self.assert_refused(op_msg(insert(), tail=b"\0" + encode(insert())), "FailedToParse")

    def test_an_unknown_section_is_refused(self):
        self.assert_refused(op_msg(insert(), tail=b"\5"), "FailedToParse")

    def test_a_document_over_16_mb_is_refused(self):
        document = raw_document(raw_field(2, "s", raw_string(MAX_DOCUMENT)))
        reply = self.answer(insert_of(document))
        self.assertIsNotNone(reply)
        # As MongoDB does: the command is answered, and the error stands either for the whole or for the document.
        error = reply["writeErrors"][0] if reply["ok"] == 1 else reply
        self.assertIn(error["code"], (2, 22, 10334, 17280), reply)
        self.assertEqual(reply.get("n", 0), 0)

    def test_nesting_over_200_is_refused(self):
        reply = self.answer(insert_of(nested(201)))
        self.assertIsNotNone(reply)
        error = reply["writeErrors"][0] if reply["ok"] == 1 else reply
        self.assertEqual(error["code"], 15, reply)
        self.assertEqual(reply.get("n", 0), 0)

    def test_damaged_documents_are_refused(self):
        whole = encode({"_id": 1, "text": "abc", "list": [1, 2]})
        damaged = {
            "a length beyond the end": struct.pack("<i", len(whole) + 40) + whole[4:],
            "an unknown type": whole.replace(b"\x02text", b"\x55text"),
            "a string without its end": whole.replace(b"abc\0", b"abcd"),
            "no terminator": whole[:-1] + b"\1",
            "a negative string length": whole.replace(struct.pack("<i", 4) + b"abc", struct.pack("<i", -4) + b"abc"),
        }
        for what, document in damaged.items():
            with self.subTest(what=what):
                self.assert_refused(insert_of(document), "InvalidBSON")

    def test_an_unknown_field_of_a_command_is_named(self):
        reply = self.assert_refused(op_msg(insert(surprise=1)), "Location40415")
        self.assertIn("surprise", reply["errmsg"])

    def test_an_unknown_command_is_named(self):
        reply = self.assert_refused(op_msg({"inzert": "things", "documents": [{"_id": 1}], "$db": "bad"}), "CommandNotFound")
        self.assertIn("inzert", reply["errmsg"])

    def test_one_bad_document_among_good_ones_is_refused_with_all_of_them(self):
        good = encode({"_id": 1})
        self.assert_refused(insert_of(good + encode({"_id": 2, "text": "abc"}).replace(b"abc\0", b"abcd")), "InvalidBSON")

    def test_an_answered_error_leaves_the_connection_usable(self):
        connection = self.connect()
        connection.sendall(op_msg(insert(surprise=1)) + op_msg({"ping": 1, "$db": "admin"}))
        self.assertEqual(self.receive(connection)["ok"], 0)
        self.assertEqual(self.receive(connection)["ok"], 1)

    def test_many_half_open_connections_do_not_keep_others_out(self):
        held = [self.connect() for _ in range(100)]
        for connection in held:
            connection.sendall(op_msg(insert())[:10])
        self.assertEqual(self.client.admin.command("ping")["ok"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
