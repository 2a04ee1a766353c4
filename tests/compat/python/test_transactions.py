"""pymongo sessions and transactions against `angelia serve`, with the retries and labels that applications build on."""

import threading
import unittest

import pymongo
from bson import Int64
from pymongo.errors import AutoReconnect, DuplicateKeyError, InvalidOperation, OperationFailure, PyMongoError
from pymongo.monitoring import CommandListener
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from angelia_server import Server

TRANSIENT = "TransientTransactionError"
UNKNOWN_COMMIT = "UnknownTransactionCommitResult"


class Commands(CommandListener):
    """Remembers what the driver sent."""

    def __init__(self):
        self.sent = []

    def started(self, event):
        self.sent.append((event.command_name, event.command))

    def succeeded(self, event):
        pass

    def failed(self, event):
        pass

    def named(self, name):
        return [command for sent, command in self.sent if sent == name]


class WithServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.commands = Commands()
        cls.client = pymongo.MongoClient(cls.server.start(), serverSelectionTimeoutMS=10000, event_listeners=[cls.commands])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.remove()

    def setUp(self):
        self.client.drop_database("compat")
        self.db = self.client["compat"]
        self.things = self.db["things"]
        self.things.insert_many([{"_id": "a", "n": 0}, {"_id": "b", "n": 0}])
        self.commands.sent.clear()
        self.addCleanup(self.fail_point, "failCommand", "off")

    def fail_point(self, name, mode, **data):
        command = {"configureFailPoint": name, "mode": mode}
        if data:
            command["data"] = data
        self.client.admin.command(command)

    def inject(self, times, *commands, **data):
        self.fail_point("failCommand", {"times": times}, failCommands=list(commands), **data)

    def numbers(self):
        return {d["_id"]: d["n"] for d in self.things.find()}

    def session(self, **options):
        session = self.client.start_session(**options)
        self.addCleanup(session.end_session)
        return session


class WithTransaction(WithServer):
    def test_commits_what_the_callback_wrote(self):
        def move(session):
            self.things.update_one({"_id": "a"}, {"$inc": {"n": -5}}, session=session)
            self.things.update_one({"_id": "b"}, {"$inc": {"n": 5}}, session=session)
            self.assertEqual(self.things.find_one({"_id": "a"}, session=session)["n"], -5)
            self.assertEqual(self.numbers(), {"a": 0, "b": 0})
            return "moved"

        self.assertEqual(self.session().with_transaction(move), "moved")
        self.assertEqual(self.numbers(), {"a": -5, "b": 5})

    def test_an_exception_of_the_callback_leaves_nothing(self):
        def broken(session):
            self.things.insert_one({"_id": "c", "n": 1}, session=session)
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.session().with_transaction(broken)
        self.assertEqual(self.numbers(), {"a": 0, "b": 0})
        self.assertEqual(len(self.commands.named("abortTransaction")), 1)

    def test_a_write_conflict_runs_the_callback_again(self):
        calls = []

        def add_one(session):
            n = self.things.find_one({"_id": "a"}, session=session)["n"]
            if not calls:
                self.session().with_transaction(lambda other: self.things.update_one({"_id": "a"}, {"$set": {"n": 10}}, session=other))
            calls.append(n)
            self.things.update_one({"_id": "a"}, {"$set": {"n": n + 1}}, session=session)

        self.session().with_transaction(add_one)
        self.assertEqual(calls, [0, 10])
        self.assertEqual(self.numbers(), {"a": 11, "b": 0})

    def test_a_commit_whose_reply_is_lost_is_retried_with_one_effect(self):
        calls = []

        def add_one(session):
            calls.append(1)
            self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)

        for data in ({"closeConnection": True}, {"errorCode": 91, "errorLabels": ["RetryableWriteError"]},
                     {"writeConcernError": {"code": 91, "errmsg": "shutting down", "errorLabels": ["RetryableWriteError"]}}):
            with self.subTest(data):
                self.commands.sent.clear()
                calls.clear()
                before = self.numbers()["a"]
                self.inject(1, "commitTransaction", **data)
                self.session().with_transaction(add_one)
                self.assertEqual(len(calls), 1)
                self.assertEqual(self.numbers()["a"], before + 1)
                commits = self.commands.named("commitTransaction")
                self.assertEqual(len(commits), 2)
                self.assertEqual(commits[1]["writeConcern"]["w"], "majority")

    def test_a_transient_error_of_a_commit_runs_the_callback_again(self):
        calls = []
        self.inject(1, "commitTransaction", errorCode=251, errorLabels=[TRANSIENT])

        def add_one(session):
            calls.append(1)
            self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)

        self.session().with_transaction(add_one)
        self.assertEqual(len(calls), 2)
        self.assertEqual(self.numbers()["a"], 1)


class Explicit(WithServer):
    def test_start_commit_and_commit_again(self):
        session = self.session()
        session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority"))
        self.things.insert_one({"_id": "c", "n": 1}, session=session)
        self.things.delete_one({"_id": "b"}, session=session)
        taken = self.things.find_one_and_update({"_id": "a"}, {"$inc": {"n": 7}}, session=session, return_document=True)
        self.assertEqual(taken["n"], 7)
        self.assertEqual(sorted(d["_id"] for d in self.things.find(session=session)), ["a", "c"])
        session.commit_transaction()
        session.commit_transaction()
        self.assertEqual(self.numbers(), {"a": 7, "c": 1})
        self.assertEqual(len(self.commands.named("commitTransaction")), 2)

    def test_abort(self):
        session = self.session()
        session.start_transaction()
        self.things.update_many({}, {"$inc": {"n": 1}}, session=session)
        session.abort_transaction()
        self.assertEqual(self.numbers(), {"a": 0, "b": 0})
        with self.assertRaises(InvalidOperation):
            session.commit_transaction()

    def test_an_empty_transaction_and_the_next_one_of_the_same_session(self):
        session = self.session()
        with session.start_transaction():
            pass
        with session.start_transaction():
            self.assertEqual(self.things.count_documents({}, session=session), 2)
        with session.start_transaction():
            self.things.insert_one({"_id": "c", "n": 1}, session=session)
        self.assertEqual(self.numbers()["c"], 1)

    def test_reads_keep_the_moment_of_the_first_statement(self):
        session = self.session()
        with session.start_transaction():
            self.assertEqual(self.things.find_one({"_id": "a"}, session=session)["n"], 0)
            self.things.update_one({"_id": "b"}, {"$set": {"n": 9}})
            self.things.insert_one({"_id": "c", "n": 9})
            self.assertEqual([d["n"] for d in self.things.find(session=session)], [0, 0])
            self.assertEqual(list(self.things.aggregate([{"$match": {"n": 9}}], session=session)), [])
            self.assertEqual(self.things.distinct("n", session=session), [0])
        self.assertEqual(self.numbers(), {"a": 0, "b": 9, "c": 9})

    def test_a_batch_larger_than_a_reply_is_read_from_the_snapshot(self):
        self.things.insert_many([{"_id": i, "n": 0} for i in range(300)])
        session = self.session()
        with session.start_transaction():
            cursor = self.things.find({}, session=session, batch_size=50)
            first = next(cursor)
            self.things.delete_many({})
            self.assertEqual(len([first, *cursor]), 302)

    def test_bulk_writes(self):
        session = self.session()
        with session.start_transaction():
            result = self.things.bulk_write(
                [pymongo.InsertOne({"_id": "c", "n": 1}), pymongo.UpdateMany({}, {"$inc": {"n": 1}}), pymongo.DeleteOne({"_id": "b"})],
                session=session)
            self.assertEqual((result.inserted_count, result.modified_count, result.deleted_count), (1, 3, 1))
        self.assertEqual(self.numbers(), {"a": 1, "c": 2})

    def test_a_plain_write_waits_for_the_transaction_that_holds_the_document(self):
        session = self.session()
        session.start_transaction()
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)
        with self.assertRaises(OperationFailure) as caught:
            self.db.command("update", "things", updates=[{"q": {"_id": "a"}, "u": {"$inc": {"n": 100}}}], maxTimeMS=50)
        self.assertEqual(caught.exception.code, 50)
        waiting = threading.Thread(target=lambda: self.things.update_one({"_id": "a"}, {"$inc": {"n": 10}}))
        waiting.start()
        session.commit_transaction()
        waiting.join(20)
        self.assertEqual(self.numbers()["a"], 11)

    def test_a_committed_transaction_survives_kill_minus_nine_and_can_be_committed_again(self):
        server = Server()
        self.addCleanup(server.remove)
        with pymongo.MongoClient(server.start(), serverSelectionTimeoutMS=20000) as client:
            things = client["compat"]["things"]
            with client.start_session() as session, client.start_session() as open_session:
                client["compat"].create_collection("things")
                open_session.start_transaction()
                things.insert_one({"_id": "lost"}, session=open_session)
                session.start_transaction()
                things.insert_one({"_id": "kept"}, session=session)
                session.commit_transaction()
                server.kill()
                server.start()
                session.commit_transaction()
                with self.assertRaises(PyMongoError) as caught:
                    open_session.commit_transaction()
                self.assertEqual(caught.exception.code, 251)
                self.assertTrue(caught.exception.has_error_label(TRANSIENT))
            self.assertEqual(list(things.find()), [{"_id": "kept"}])


class Labels(WithServer):
    def error_of(self, call, *arguments, **options):
        with self.assertRaises(PyMongoError) as caught:
            call(*arguments, **options)
        return caught.exception

    def test_a_write_conflict_is_transient_and_ends_the_transaction(self):
        first, second = self.session(), self.session()
        first.start_transaction()
        second.start_transaction()
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=first)
        error = self.error_of(self.things.update_one, {"_id": "a"}, {"$inc": {"n": 2}}, session=second)
        self.assertEqual((error.code, error.details["codeName"], error.has_error_label(TRANSIENT)), (112, "WriteConflict", True))
        error = self.error_of(self.things.find_one, {}, session=second)
        self.assertEqual((error.code, error.details["codeName"], error.has_error_label(TRANSIENT)), (251, "NoSuchTransaction", True))
        first.commit_transaction()
        self.assertEqual(self.numbers()["a"], 1)

    def test_a_duplicate_key_is_not_transient_and_ends_the_transaction(self):
        session = self.session()
        session.start_transaction()
        error = self.error_of(self.things.insert_one, {"_id": "a"}, session=session)
        self.assertIsInstance(error, DuplicateKeyError)
        self.assertFalse(error.has_error_label(TRANSIENT))
        error = self.error_of(self.things.insert_one, {"_id": "c"}, session=session)
        self.assertEqual((error.code, error.has_error_label(TRANSIENT)), (251, True))

    def test_statements_that_failed_by_fail_point(self):
        for data, transient in (({"errorCode": 112}, True), ({"errorCode": 11602}, True), ({"closeConnection": True}, True),
                                ({"errorCode": 8}, False), ({"errorCode": 112, "errorLabels": []}, False)):
            with self.subTest(data):
                session = self.session()
                session.start_transaction()
                self.inject(1, "insert", **data)
                error = self.error_of(self.things.insert_one, {"_id": "c"}, session=session)
                self.assertEqual((error.has_error_label(TRANSIENT), error.has_error_label("RetryableWriteError")), (transient, False))
                self.assertEqual(len(self.commands.named("insert")), 1)
                session.abort_transaction()
                self.commands.sent.clear()

    def test_a_commit_that_nobody_answers_is_unknown_and_can_be_asked_for_again(self):
        session = self.session()
        session.start_transaction()
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)
        self.inject(2, "commitTransaction", closeConnection=True)
        error = self.error_of(session.commit_transaction)
        self.assertIsInstance(error, AutoReconnect)
        self.assertTrue(error.has_error_label(UNKNOWN_COMMIT))
        self.assertFalse(error.has_error_label(TRANSIENT))
        session.commit_transaction()
        self.assertEqual(self.numbers()["a"], 1)

    def test_a_commit_with_a_write_concern_error_is_unknown_only_when_retrying_can_help(self):
        for code, unknown in ((64, True), (100, False)):
            with self.subTest(code):
                session = self.session()
                session.start_transaction()
                self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)
                self.inject(1, "commitTransaction", writeConcernError={"code": code, "errmsg": "concern"})
                error = self.error_of(session.commit_transaction)
                self.assertEqual((error.code, error.has_error_label(UNKNOWN_COMMIT)), (code, unknown))
                session.commit_transaction()
        self.assertEqual(self.numbers()["a"], 2)

    def test_an_abort_that_fails_is_retried_once_and_never_raises(self):
        session = self.session()
        session.start_transaction()
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)
        self.inject(1, "abortTransaction", closeConnection=True)
        session.abort_transaction()
        self.assertEqual(len(self.commands.named("abortTransaction")), 2)
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 5}})
        self.assertEqual(self.numbers()["a"], 5)


class Times(WithServer):
    def test_a_causal_session_reads_after_what_it_wrote(self):
        writer, reader = self.session(causal_consistency=True), self.session(causal_consistency=True)
        for i in range(20):
            self.things.update_one({"_id": "a"}, {"$set": {"n": i}}, session=writer)
            reader.advance_cluster_time(writer.cluster_time)
            reader.advance_operation_time(writer.operation_time)
            self.assertEqual(self.things.find_one({"_id": "a"}, session=reader)["n"], i)
        asked = [c["readConcern"]["afterClusterTime"] for c in self.commands.named("find")]
        self.assertEqual(len(asked), 20)
        self.assertEqual(sorted(asked), asked)
        self.assertEqual(len(set(asked)), 20)
        with writer.start_transaction():
            self.things.find_one({}, session=writer)
        self.assertIn("afterClusterTime", self.commands.named("find")[-1]["readConcern"])

    def test_a_snapshot_session_reads_one_moment(self):
        session = self.session(snapshot=True)
        self.assertEqual(self.things.find_one({"_id": "a"}, session=session)["n"], 0)
        self.things.update_one({"_id": "a"}, {"$set": {"n": 5}})
        self.things.insert_one({"_id": "c", "n": 5})
        self.assertEqual([d["n"] for d in self.things.find(session=session)], [0, 0])
        self.assertEqual(self.things.distinct("n", session=session), [0])
        self.assertEqual(list(self.things.aggregate([{"$count": "n"}], session=session)), [{"n": 2}])
        finds = self.commands.named("find")
        self.assertEqual(finds[0]["readConcern"], {"level": "snapshot"})
        self.assertIn("atClusterTime", finds[1]["readConcern"])
        self.assertEqual([d["n"] for d in self.things.find(session=self.session(snapshot=True))], [5, 0, 5])

    def test_a_snapshot_session_may_start_with_distinct_and_writes_have_none(self):
        session = self.session(snapshot=True)
        self.assertEqual(self.things.distinct("n", session=session), [0])
        self.things.update_one({"_id": "a"}, {"$set": {"n": 5}})
        self.assertEqual(self.things.distinct("n", session=session), [0])
        with self.assertRaises(OperationFailure) as caught:
            self.db.command({"insert": "things", "documents": [{}], "readConcern": {"level": "snapshot"}})
        self.assertEqual(caught.exception.code, 72)


class Streams(WithServer):
    def insert_and_see(self, stream, ids):
        self.things.insert_many([{"_id": i} for i in ids])
        return [next(stream)["documentKey"]["_id"] for _ in ids]

    def test_are_resumed_after_a_failed_get_more(self):
        with self.things.watch(max_await_time_ms=100) as stream:
            self.assertEqual(self.insert_and_see(stream, [1, 2]), [1, 2])
            for i, data in enumerate(({"errorCode": 10107}, {"errorCode": 91}, {"closeConnection": True})):
                self.fail_point("failGetMoreAfterCursorCheckout", {"times": 1}, **data)
                self.assertEqual(self.insert_and_see(stream, [10 * i + 11, 10 * i + 12]), [10 * i + 11, 10 * i + 12])
            opened = [c for c in self.commands.named("aggregate") if "$changeStream" in c["pipeline"][0]]
            self.assertEqual(len(opened), 4)
            self.assertTrue(all("resumeAfter" in c["pipeline"][0]["$changeStream"] for c in opened[1:]))
            self.fail_point("failGetMoreAfterCursorCheckout", {"times": 1}, errorCode=8)
            with self.assertRaises(OperationFailure) as caught:
                stream.try_next()
            self.assertEqual(caught.exception.code, 8)

    def test_show_a_transaction_whole_in_order_and_only_after_its_commit(self):
        self.db.create_collection("others")
        session = self.session()
        with self.db.watch(max_await_time_ms=100) as stream:
            with session.start_transaction():
                self.things.insert_one({"_id": "c"}, session=session)
                self.db["others"].insert_one({"_id": "d"}, session=session)
                self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)
                self.things.delete_one({"_id": "b"}, session=session)
                self.assertIsNone(stream.try_next())
            self.things.insert_one({"_id": "e"})
            events = [next(stream) for _ in range(5)]
        self.assertEqual([(e["operationType"], e["documentKey"]["_id"]) for e in events],
                         [("insert", "c"), ("insert", "d"), ("update", "a"), ("delete", "b"), ("insert", "e")])
        number = self.commands.named("commitTransaction")[0]["txnNumber"]
        for event in events[:4]:
            self.assertEqual(event["lsid"]["id"], session.session_id["id"])
            self.assertEqual((event["txnNumber"], event["clusterTime"]), (Int64(number), events[0]["clusterTime"]))
        self.assertNotIn("lsid", events[4])
        self.assertGreater(events[4]["clusterTime"], events[0]["clusterTime"])
        with self.db.watch(resume_after=events[1]["_id"], max_await_time_ms=100) as stream:
            self.assertEqual([next(stream) for _ in range(3)], events[2:])


class Structure(WithServer):
    def test_transactions_create_collections_and_indexes(self):
        session = self.session()
        with session.start_transaction():
            self.db["implicit"].insert_one({"_id": 1}, session=session)
            self.db.create_collection("explicit", session=session)
            self.db["explicit"].create_index("k", unique=True, session=session)
            self.db["explicit"].insert_one({"_id": 1, "k": 1}, session=session)
            self.assertEqual(self.db.list_collection_names(), ["things"])
        self.assertEqual(sorted(self.db.list_collection_names()), ["explicit", "implicit", "things"])
        with self.assertRaises(DuplicateKeyError):
            self.db["explicit"].insert_one({"k": 1})
        session.start_transaction()
        self.db["never"].insert_one({}, session=session)
        session.abort_transaction()
        self.assertNotIn("never", self.db.list_collection_names())

    def test_what_is_refused_in_a_transaction(self):
        for command in ({"count": "things"}, {"drop": "things"}, {"listCollections": 1}, {"listIndexes": "things"},
                        {"dropIndexes": "things", "index": "*"}, {"aggregate": "things", "pipeline": [{"$changeStream": {}}], "cursor": {}}):
            with self.subTest(command):
                session = self.session()
                session.start_transaction()
                self.things.insert_one({"n": 1}, session=session)
                with self.assertRaises(OperationFailure) as caught:
                    self.db.command(command, session=session)
                self.assertEqual((caught.exception.code, caught.exception.details["codeName"]), (263, "OperationNotSupportedInTransaction"))
                self.assertFalse(caught.exception.has_error_label(TRANSIENT))
                session.abort_transaction()
        self.assertEqual(self.numbers(), {"a": 0, "b": 0})


class Ends(WithServer):
    def open_transaction(self):
        session = self.session()
        session.start_transaction()
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)
        return session

    def is_gone(self, session):
        with self.assertRaises(OperationFailure) as caught:
            self.things.find_one({}, session=session)
        self.assertEqual((caught.exception.code, caught.exception.has_error_label(TRANSIENT)), (251, True))
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 10}})
        self.assertEqual(self.numbers()["a"], 10)

    def test_kill_all_sessions_aborts(self):
        session = self.open_transaction()
        self.client.admin.command({"killAllSessions": []})
        self.is_gone(session)

    def test_kill_sessions_aborts(self):
        session = self.open_transaction()
        self.client.admin.command({"killSessions": [session.session_id]})
        self.is_gone(session)

    def test_end_sessions_aborts(self):
        session = self.open_transaction()
        self.client.admin.command({"endSessions": [session.session_id]})
        self.is_gone(session)

    def test_a_session_that_ends_aborts(self):
        session = self.open_transaction()
        session.end_session()
        self.assertEqual(len(self.commands.named("abortTransaction")), 1)
        self.things.update_one({"_id": "a"}, {"$inc": {"n": 10}})
        self.assertEqual(self.numbers()["a"], 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
