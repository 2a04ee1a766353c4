"""pymongo against `angelia serve`: what an application does every day, and what it must survive."""

import unittest

import pymongo
from bson import BSON, Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import AutoReconnect, BulkWriteError, DuplicateKeyError, OperationFailure, WriteError

from angelia_server import Server


class WithServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = pymongo.MongoClient(cls.server.start(), serverSelectionTimeoutMS=10000)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.remove()

    def setUp(self):
        self.client.drop_database("compat")
        self.db = self.client["compat"]
        self.things = self.db["things"]


class Crud(WithServer):
    def test_sees_a_replica_set_with_one_writable_member(self):
        hello = self.client.admin.command("hello")
        self.assertTrue(hello["isWritablePrimary"])
        self.assertEqual(hello["setName"], "rs0")
        self.assertEqual(hello["hosts"], [f"127.0.0.1:{self.server.port}"])
        self.assertEqual(self.client.admin.command("buildInfo")["versionArray"][0], 7)

    def test_keeps_every_type_byte_for_byte(self):
        document = {"_id": 1, "d": 1.5, "s": "grüße", "o": {"a": [1, "x", None]}, "b": Binary(b"\0\1", 5), "oid": ObjectId(), "t": True,
                    "n": None, "i": 7, "l": Int64(2**40), "ts": Timestamp(5, 6), "dec": Decimal128("1.50"), "r": Regex("^a", "i"),
                    "min": MinKey(), "max": MaxKey()}
        self.things.insert_one(document)
        raw = pymongo.collection.Collection(self.db, "things").find_one({"_id": 1})
        self.assertEqual(BSON.encode(raw), BSON.encode(document))

    def test_find_filters_sorts_projects_and_pages(self):
        self.things.insert_many([{"_id": i, "n": i % 5, "tags": ["t%d" % (i % 3)]} for i in range(500)])
        self.assertEqual(self.things.count_documents({"n": 2}), 100)
        self.assertEqual(self.things.estimated_document_count(), 500)
        ids = [d["_id"] for d in self.things.find({"n": {"$in": [0, 4]}, "tags": "t1"}, {"_id": 1}).sort("_id", -1).batch_size(7)]
        self.assertEqual(ids, [i for i in range(499, -1, -1) if i % 5 in (0, 4) and i % 3 == 1])
        page = [d["_id"] for d in self.things.find().sort([("n", 1), ("_id", -1)]).skip(99).limit(3)]
        self.assertEqual(page, [0, 496, 491])
        self.assertEqual(self.things.find_one({"_id": 3}, {"n": 1, "_id": 0}), {"n": 3})

    def test_updates(self):
        self.things.insert_one({"_id": 1, "n": 1, "list": [1, 2, 3]})
        result = self.things.update_one({"_id": 1}, {"$inc": {"n": 4}, "$push": {"list": {"$each": [4, 5]}}, "$set": {"a.b": "x"}})
        self.assertEqual((result.matched_count, result.modified_count), (1, 1))
        self.assertEqual(self.things.find_one(), {"_id": 1, "n": 5, "list": [1, 2, 3, 4, 5], "a": {"b": "x"}})
        self.things.update_one({"_id": 1}, {"$pull": {"list": {"$gte": 3}}, "$unset": {"a": ""}, "$addToSet": {"s": "y"}, "$min": {"n": 2}})
        self.assertEqual(self.things.find_one(), {"_id": 1, "n": 2, "list": [1, 2], "s": ["y"]})
        unchanged = self.things.update_one({"_id": 1}, {"$set": {"n": 2}})
        self.assertEqual((unchanged.matched_count, unchanged.modified_count), (1, 0))
        upsert = self.things.update_one({"_id": 2}, {"$setOnInsert": {"new": True}}, upsert=True)
        self.assertEqual(upsert.upserted_id, 2)
        self.things.replace_one({"_id": 2}, {"whole": 1})
        self.assertEqual(self.things.find_one({"_id": 2}), {"_id": 2, "whole": 1})
        many = self.things.update_many({}, {"$set": {"all": 1}})
        self.assertEqual(many.modified_count, 2)

    def test_find_and_modify(self):
        self.things.insert_many([{"_id": i, "state": "new", "rank": -i} for i in range(3)])
        taken = self.things.find_one_and_update({"state": "new"}, {"$set": {"state": "taken"}}, sort=[("rank", 1)])
        self.assertEqual(taken, {"_id": 2, "state": "new", "rank": -2})
        after = self.things.find_one_and_update({"_id": 9}, {"$inc": {"n": 1}}, upsert=True, return_document=pymongo.ReturnDocument.AFTER)
        self.assertEqual(after, {"_id": 9, "n": 1})
        self.assertEqual(self.things.find_one_and_delete({"_id": 9}), {"_id": 9, "n": 1})
        self.assertIsNone(self.things.find_one_and_delete({"_id": 9}))

    def test_bulk_reports_each_failure(self):
        with self.assertRaises(BulkWriteError) as caught:
            self.things.insert_many([{"_id": 1}, {"_id": 1}, {"_id": 2}], ordered=False)
        details = caught.exception.details
        self.assertEqual(details["nInserted"], 2)
        self.assertEqual([(e["index"], e["code"]) for e in details["writeErrors"]], [(1, 11000)])
        result = self.things.bulk_write([pymongo.InsertOne({"_id": 3}), pymongo.UpdateOne({"_id": 1}, {"$set": {"x": 1}}),
                                         pymongo.DeleteMany({"_id": {"$gte": 2}})])
        self.assertEqual((result.inserted_count, result.modified_count, result.deleted_count), (1, 1, 2))

    def test_aggregate(self):
        self.things.insert_many([{"_id": i, "n": i} for i in range(10)])
        stages = [{"$match": {"n": {"$gte": 4}}}, {"$sort": {"n": -1}}, {"$skip": 1}, {"$limit": 3}, {"$project": {"_id": 0, "n": 1}}]
        self.assertEqual(list(self.things.aggregate(stages)), [{"n": 8}, {"n": 7}, {"n": 6}])
        self.assertEqual(list(self.things.aggregate([{"$count": "how_many"}])), [{"how_many": 10}])

    def test_unknown_things_are_refused_with_mongodbs_error(self):
        for code, call in ((59, lambda: self.db.command("fly")),
                           (2, lambda: list(self.things.find({"a": {"$flies": 1}}))),
                           (2, lambda: list(self.things.find({"$flies": 1}))),
                           (40324, lambda: list(self.things.aggregate([{"$fly": 1}]))),
                           (40415, lambda: self.db.command({"find": "things", "wings": 2})),
                           (73, lambda: self.client["compat"].command({"create": ""}))):
            with self.assertRaises(OperationFailure) as caught:
                call()
            self.assertEqual(caught.exception.code, code, caught.exception)
        with self.assertRaises(WriteError) as caught:
            self.things.update_one({}, {"$fly": {"a": 1}}, upsert=True)
        self.assertEqual(caught.exception.code, 9)
        self.assertEqual(self.things.count_documents({}), 0)


class Indexes(WithServer):
    def test_duplicate_key_names_index_and_value(self):
        self.things.create_index("email", unique=True)
        self.things.insert_one({"email": "a@b.c"})
        with self.assertRaises(DuplicateKeyError) as caught:
            self.things.insert_one({"email": "a@b.c"})
        details = caught.exception.details
        self.assertEqual((details["keyPattern"], details["keyValue"]), ({"email": 1}, {"email": "a@b.c"}))
        self.assertIn("E11000 duplicate key error collection: compat.things index: email_1", details["errmsg"])

    def test_are_listed_kept_and_dropped(self):
        self.things.create_index([("a", 1), ("b.c", -1)])
        self.things.create_index("at", expireAfterSeconds=60)
        names = sorted(i["name"] for i in self.things.list_indexes())
        self.assertEqual(names, ["_id_", "a_1_b.c_-1", "at_1"])
        self.assertEqual(self.things.index_information()["at_1"]["expireAfterSeconds"], 60)
        self.things.drop_index("at_1")
        self.assertNotIn("at_1", self.things.index_information())
        with self.assertRaises(OperationFailure) as caught:
            self.things.drop_index("nowhere")
        self.assertEqual(caught.exception.code, 27)

    def test_a_unique_index_over_duplicates_is_refused_and_leaves_nothing(self):
        self.things.insert_many([{"k": 1}, {"k": 1}])
        with self.assertRaises(OperationFailure) as caught:
            self.things.create_index("k", unique=True)
        self.assertEqual(caught.exception.code, 11000)
        self.assertEqual(list(self.things.index_information()), ["_id_"])

    def test_validate_finds_records_and_indexes_in_agreement(self):
        self.things.create_index("tags")
        self.things.insert_many([{"_id": i, "tags": [i, i + 1]} for i in range(100)])
        self.things.delete_many({"tags": {"$lt": 30}})
        report = self.db.command("validate", "things")
        self.assertTrue(report["valid"], report)
        self.assertEqual(report["nrecords"], 70)


class Compression(WithServer):
    def bytes_in_and_out(self):
        network = self.client.admin.command("serverStatus")["network"]
        return network["bytesIn"], network["bytesOut"]

    def test_messages_go_packed_both_ways(self):
        documents = [{"_id": i, "pad": "x" * 1000} for i in range(1000)]
        for name in ("snappy", "zlib", "zstd"):
            self.things.drop()
            before = self.bytes_in_and_out()
            with pymongo.MongoClient(self.server.uri, compressors=name, serverSelectionTimeoutMS=10000) as client:
                things = client["compat"]["things"]
                things.insert_many(documents)
                self.assertEqual(list(things.find().sort("_id", 1)), documents)
                self.assertEqual(client.admin.command("hello", compression=[name])["compression"], [name])
                things.with_options(write_concern=pymongo.WriteConcern(w=0)).insert_one({"_id": -1, "pad": "y" * 1000})
                # Nobody waited for that one; this one is behind it, and reads see both once it is acknowledged.
                things.insert_one({"_id": -2})
                self.assertEqual(things.count_documents({}), 1002)
            bytes_in, bytes_out = (b - a for a, b in zip(before, self.bytes_in_and_out()))
            self.assertLess(bytes_in, 300_000, name)
            self.assertLess(bytes_out, 300_000, name)


class RetriedWrites(WithServer):
    def fail(self, **data):
        self.client.admin.command({"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": data})

    def test_a_write_whose_connection_broke_is_done_once(self):
        self.fail(failCommands=["insert"], closeConnection=True)
        self.things.insert_one({"_id": 1})
        self.fail(failCommands=["update"], errorCode=91, errorLabels=["RetryableWriteError"])
        self.things.update_one({"_id": 1}, {"$inc": {"n": 1}})
        self.assertEqual(list(self.things.find()), [{"_id": 1, "n": 1}])

    def test_a_write_concern_error_after_the_write_is_retried_without_a_second_effect(self):
        self.things.insert_one({"_id": 1, "n": 0})
        self.fail(failCommands=["update"], writeConcernError={"code": 91, "errmsg": "shutting down", "errorLabels": ["RetryableWriteError"]})
        result = self.things.update_one({"_id": 1}, {"$inc": {"n": 1}})
        self.assertEqual(result.modified_count, 1)
        self.assertEqual(self.things.find_one()["n"], 1)

    def test_an_error_without_label_is_not_retried(self):
        self.fail(failCommands=["insert"], errorCode=8)
        with self.assertRaises(OperationFailure):
            self.things.insert_one({"_id": 1})
        self.assertEqual(self.things.count_documents({}), 0)


class Restarts(unittest.TestCase):
    def test_a_watch_resumes_over_kill_minus_nine_without_loss_or_repetition(self):
        server = Server()
        self.addCleanup(server.remove)
        uri = server.start()
        with pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000) as client:
            things = client["compat"]["things"]
            with things.watch([{"$match": {"operationType": "insert"}}], max_await_time_ms=500) as stream:
                things.insert_many([{"_id": i} for i in range(10)])
                seen = [next(stream)["documentKey"]["_id"] for _ in range(4)]
                server.kill()
                server.start()
                for i in range(10, 20):
                    self.insert_until_it_works(things, {"_id": i})
                while len(seen) < 20:
                    seen.append(next(stream)["documentKey"]["_id"])
            self.assertEqual(seen, list(range(20)))
            self.assertEqual(things.count_documents({}), 20)

    def insert_until_it_works(self, things, document):
        for _ in range(20):
            try:
                return things.insert_one(document)
            except AutoReconnect:
                continue
            except DuplicateKeyError:
                return None
        self.fail("the server did not come back")

    def test_acknowledged_writes_survive_and_a_stopped_server_says_goodbye(self):
        server = Server()
        self.addCleanup(server.remove)
        with pymongo.MongoClient(server.start(), serverSelectionTimeoutMS=20000) as client:
            client["compat"]["things"].insert_many([{"_id": i, "pad": "x" * 1000} for i in range(1000)])
        server.kill()
        with pymongo.MongoClient(server.start(), serverSelectionTimeoutMS=20000) as client:
            self.assertEqual(client["compat"]["things"].count_documents({}), 1000)
            self.assertTrue(client["compat"].command("validate", "things")["valid"])
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
