"""What pymongo does when something fails: every fault is injected with a fail point, and seen from the application and by the commands sent."""

import threading
import unittest
import uuid

import pymongo
from bson import Int64
from pymongo import monitoring
from pymongo.errors import AutoReconnect, CursorNotFound, OperationFailure, PyMongoError

from angelia_server import Server

ONCE = {"times": 1}


class Sent(monitoring.CommandListener):
    """The names of the commands that went out."""

    def __init__(self):
        self.names = []

    def started(self, event):
        self.names.append(event.command_name)

    def succeeded(self, event):
        pass

    def failed(self, event):
        pass


class Topology(monitoring.ServerListener):
    """Waits until a server was seen as unknown and as primary again."""

    def __init__(self):
        self.seen = threading.Condition()
        self.kinds = []

    def opened(self, event):
        pass

    def closed(self, event):
        pass

    def description_changed(self, event):
        with self.seen:
            self.kinds.append(event.new_description.server_type_name)
            self.seen.notify_all()

    def wait_for(self, kinds, timeout_s):
        def found():
            rest = iter(self.kinds)
            return all(kind in rest for kind in kinds)

        with self.seen:
            return self.seen.wait_for(found, timeout_s)


class WithFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.sent = Sent()
        cls.client = pymongo.MongoClient(cls.server.start(), serverSelectionTimeoutMS=10000, event_listeners=[cls.sent])
        # Faults are set through a client of their own, so that the other one's connections see nothing of it.
        cls.admin = pymongo.MongoClient(cls.server.uri, serverSelectionTimeoutMS=10000).admin

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.admin.client.close()
        cls.server.remove()

    def setUp(self):
        self.faults_off()
        self.admin.command("killAllSessions", [])
        self.client.drop_database("compat")
        self.things = self.client["compat"]["things"]
        self.things.insert_many([{"_id": i, "n": 0} for i in range(3)])
        self.sent.names.clear()

    def tearDown(self):
        self.faults_off()

    def faults_off(self):
        for point in ("failCommand", "onPrimaryTransactionalWrite", "failGetMoreAfterCursorCheckout"):
            self.admin.command("configureFailPoint", point, mode="off")

    def fail(self, point="failCommand", mode=ONCE, **data):
        self.admin.command("configureFailPoint", point, mode=mode, data=data)

    def documents(self):
        return sorted(((d["_id"], d["n"]) for d in self.admin.client["compat"]["things"].find()))


WRITES = {
    "insert": (lambda things: things.insert_one({"_id": 9, "n": 0}).inserted_id, 9),
    "update": (lambda things: things.update_one({"_id": 1}, {"$inc": {"n": 1}}).modified_count, 1),
    "delete": (lambda things: things.delete_one({"_id": 2}).deleted_count, 1),
    "findAndModify": (lambda things: things.find_one_and_update({"_id": 1}, {"$inc": {"n": 1}}, return_document=True), {"_id": 1, "n": 1}),
}
AFTER_WRITE = {
    "insert": [(0, 0), (1, 0), (2, 0), (9, 0)],
    "update": [(0, 0), (1, 1), (2, 0)],
    "delete": [(0, 0), (1, 0)],
    "findAndModify": [(0, 0), (1, 1), (2, 0)],
}
UNTOUCHED = [(0, 0), (1, 0), (2, 0)]


class Writes(WithFaults):
    def each(self, **fault):
        """Every kind of write under a fault that hits it once: it is sent twice and has one effect."""
        for name, (write, expected) in WRITES.items():
            with self.subTest(command=name):
                self.setUp()
                self.fail(failCommands=[name], **fault)
                self.assertEqual(write(self.things), expected)
                self.assertEqual(self.sent.names, [name, name])
                self.assertEqual(self.documents(), AFTER_WRITE[name])

    def test_the_connection_breaks_before_the_write(self):
        self.each(closeConnection=True)

    def test_the_server_says_that_it_shuts_down(self):
        self.each(errorCode=91)

    def test_a_label_makes_any_error_retryable(self):
        self.each(errorCode=2, errorLabels=["RetryableWriteError"])

    def test_a_retriable_write_concern_error_comes_after_the_write(self):
        self.each(writeConcernError={"code": 91, "errmsg": "shutting down"})

    def test_without_the_label_nothing_is_retried(self):
        for name, (write, _) in WRITES.items():
            with self.subTest(command=name):
                self.setUp()
                self.fail(failCommands=[name], errorCode=91, errorLabels=[])
                with self.assertRaises(PyMongoError):
                    write(self.things)
                self.assertEqual(self.sent.names, [name])
                self.assertEqual(self.documents(), UNTOUCHED)

    def test_a_write_concern_error_without_a_retriable_code_is_the_applications(self):
        self.fail(failCommands=["update"], writeConcernError={"code": 64, "codeName": "WriteConcernTimeout", "errmsg": "x", "errInfo": {"a": 1}})
        with self.assertRaises(pymongo.errors.WriteConcernError) as caught:
            self.things.update_one({"_id": 1}, {"$inc": {"n": 1}})
        self.assertEqual((caught.exception.code, caught.exception.details["errInfo"]), (64, {"a": 1}))
        self.assertEqual(self.documents(), AFTER_WRITE["update"])

    def test_the_connection_breaks_behind_the_commit(self):
        for name, (write, expected) in WRITES.items():
            with self.subTest(command=name):
                self.setUp()
                self.fail("onPrimaryTransactionalWrite")
                self.assertEqual(write(self.things), expected)
                self.assertEqual(self.sent.names, [name, name])
                self.assertEqual(self.documents(), AFTER_WRITE[name])

    def test_the_connection_breaks_in_the_middle_of_a_list(self):
        self.fail("onPrimaryTransactionalWrite", mode={"skip": 2}, failBeforeCommitExceptionCode=1)
        with self.assertRaises(AutoReconnect):
            self.things.insert_many([{"_id": i, "n": 1} for i in range(10, 15)])
        self.assertEqual(self.documents(), UNTOUCHED + [(10, 1), (11, 1)])
        self.setUp()
        self.fail("onPrimaryTransactionalWrite", failBeforeCommitExceptionCode=1)
        self.assertEqual(len(self.things.insert_many([{"_id": i, "n": 1} for i in range(10, 15)]).inserted_ids), 5)
        self.assertEqual(self.documents(), UNTOUCHED + [(i, 1) for i in range(10, 15)])

    def test_bulk_writes_are_retried_statement_by_statement(self):
        updates = [pymongo.UpdateOne({"_id": i}, {"$inc": {"n": 1}}) for i in range(3)]
        self.fail("onPrimaryTransactionalWrite", mode={"skip": 1}, failBeforeCommitExceptionCode=8)
        with self.assertRaises(AutoReconnect):
            self.things.bulk_write(updates)
        self.assertEqual(self.documents(), [(0, 1), (1, 0), (2, 0)], "the second attempt repeats nothing and fails where the first did")
        self.fail("onPrimaryTransactionalWrite", mode={"skip": 1})
        self.assertEqual(self.things.bulk_write(updates[1:]).modified_count, 2, "the connection broke behind the last statement")
        self.assertEqual(self.documents(), [(0, 1), (1, 1), (2, 1)])

    def test_the_bulk_write_command(self):
        command = {"bulkWrite": 1, "nsInfo": [{"ns": "compat.things"}, {"ns": "compat.others"}], "cursor": {"batchSize": 2},
                   "ops": [{"insert": 1, "document": {"_id": 1}}, {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"n": 1}}},
                           {"delete": 0, "filter": {"_id": 2}}]}
        self.fail(failCommands=["bulkWrite"], errorCode=91)
        with self.assertRaises(AutoReconnect):
            self.client.admin.command(command)
        self.assertEqual(self.documents(), UNTOUCHED)
        with self.client.start_session() as session:
            reply = self.client.admin.command(command, session=session)
            self.assertEqual((reply["nInserted"], reply["nModified"], reply["nDeleted"], reply["nErrors"]), (1, 1, 1, 0))
            self.assertEqual([item["idx"] for item in reply["cursor"]["firstBatch"]], [0, 1])
            more = self.client.admin.command({"getMore": Int64(reply["cursor"]["id"]), "collection": "$cmd.bulkWrite"}, session=session)
            self.assertEqual([item["idx"] for item in more["cursor"]["nextBatch"]], [2])
        self.assertEqual(self.documents(), [(0, 0), (1, 1)])


READS = {
    "find": lambda things: things.find_one({"_id": 1}),
    "aggregate": lambda things: list(things.aggregate([{"$match": {"_id": 1}}])),
    "count": lambda things: things.estimated_document_count(),
    "distinct": lambda things: things.distinct("_id"),
    "listIndexes": lambda things: [i["name"] for i in things.list_indexes()],
    "listCollections": lambda things: things.database.list_collection_names(),
    "listDatabases": lambda things: things.database.client.list_database_names(),
}


class Reads(WithFaults):
    def each(self, **fault):
        for name, read in READS.items():
            with self.subTest(command=name):
                expected = read(self.things)
                self.sent.names.clear()
                self.fail(failCommands=[name], **fault)
                self.assertEqual(read(self.things), expected)
                self.assertEqual(self.sent.names, [name, name])

    def test_the_connection_breaks(self):
        self.each(closeConnection=True)

    def test_retriable_codes(self):
        self.each(errorCode=6)
        for code in (7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436):
            with self.subTest(code=code):
                self.sent.names.clear()
                self.fail(failCommands=["find"], errorCode=code)
                self.assertEqual(self.things.find_one({"_id": 1}), {"_id": 1, "n": 0})
                self.assertEqual(self.sent.names, ["find", "find"])

    def test_a_second_failure_and_other_codes_are_the_applications(self):
        self.fail(mode={"times": 2}, failCommands=["find"], errorCode=91)
        with self.assertRaises(PyMongoError):
            self.things.find_one()
        self.assertEqual(self.sent.names, ["find", "find"])
        self.sent.names.clear()
        self.fail(failCommands=["find"], errorCode=8)
        with self.assertRaises(OperationFailure) as caught:
            self.things.find_one()
        self.assertEqual(caught.exception.details["codeName"], "UnknownError")
        self.assertEqual(self.sent.names, ["find"])

    def test_a_slow_server_meets_the_clients_timeout(self):
        self.fail(mode="alwaysOn", failCommands=["find"], blockConnection=True, blockTimeMS=2000)
        with self.assertRaises(PyMongoError) as caught, pymongo.timeout(0.2):
            self.things.find_one()
        self.assertTrue(caught.exception.timeout)
        with self.assertRaises(OperationFailure) as caught:
            self.things.find_one(max_time_ms=20)
        self.assertEqual(caught.exception.code, 50)

    def test_cursors_of_a_killed_session_are_gone(self):
        cursor = self.things.find(batch_size=2)
        next(cursor)
        self.admin.command("killAllSessions", [])
        with self.assertRaises(CursorNotFound):
            list(cursor)


class Streams(WithFaults):
    def watch(self):
        stream = self.things.watch(max_await_time_ms=100)
        self.addCleanup(stream.close)
        stream.try_next()
        self.sent.names.clear()
        return stream

    def next_ids(self, stream, ids):
        for i in ids:
            self.things.insert_one({"_id": i, "n": 0})
        self.assertEqual([next(stream)["documentKey"]["_id"] for _ in ids], ids)

    def test_resume_after_faults_behind_the_checkout(self):
        stream = self.watch()
        for i, data in enumerate([{"errorCode": 6}, {"errorCode": 91}, {"errorCode": 10107}, {"errorCode": 234}, {"errorCode": 43},
                                  {"closeConnection": True}]):
            with self.subTest(**data):
                self.fail("failGetMoreAfterCursorCheckout", **data)
                self.next_ids(stream, [100 + 2 * i, 101 + 2 * i])
                self.assertEqual(self.sent.names.count("aggregate"), i + 1)

    def test_resume_when_the_label_says_so(self):
        stream = self.watch()
        self.fail(failCommands=["getMore"], errorCode=50, errorLabels=["ResumableChangeStreamError"])
        self.next_ids(stream, [100, 101])
        self.assertEqual(self.sent.names.count("aggregate"), 1)

    def test_do_not_resume_without_it(self):
        for point, data in (("failCommand", {"failCommands": ["getMore"], "errorCode": 6}),
                            ("failCommand", {"failCommands": ["getMore"], "errorCode": 262, "errorLabels": []}),
                            ("failGetMoreAfterCursorCheckout", {"errorCode": 2})):
            with self.subTest(**data):
                stream = self.watch()
                self.fail(point, **data)
                with self.assertRaises(PyMongoError):
                    stream.try_next()
                self.assertNotIn("aggregate", self.sent.names)

    def test_opening_is_a_retryable_read(self):
        self.fail(failCommands=["aggregate"], closeConnection=True)
        with self.things.watch(max_await_time_ms=100):
            self.assertEqual(self.sent.names, ["aggregate", "aggregate"])


class Monitoring(WithFaults):
    def test_a_monitors_hello_fails_and_recovers(self):
        for data in ({"errorCode": 91}, {"closeConnection": True}):
            with self.subTest(**data):
                seen = Topology()
                name = f"app-{uuid.uuid4()}"
                with pymongo.MongoClient(self.server.uri, appname=name, heartbeatFrequencyMS=500, event_listeners=[seen]) as client:
                    client.admin.command("ping")
                    with seen.seen:
                        seen.kinds.clear()
                    self.fail(mode={"times": 2}, failCommands=["hello", "isMaster"], appName=name, **data)
                    self.assertTrue(seen.wait_for(["Unknown", "RSPrimary"], 20), seen.kinds)
                    client.admin.command("ping")
                    self.admin.command("ping")  # another application notices nothing

    def test_test_runners_find_what_they_look_for(self):
        self.assertIn("enableTestCommands=1", self.admin.command("getCmdLineOpts")["argv"])
        parameters = self.admin.command("getParameter", "*")
        self.assertTrue(parameters["enableTestCommands"])
        self.assertEqual(parameters["featureCompatibilityVersion"], {"version": "7.0"})
        self.assertFalse(parameters["requireApiVersion"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
