// The node driver (npm mongodb 6) against `angelia serve`.
import { test, before, after, beforeEach } from "node:test";
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { Server } from "./server.mjs";

const require = createRequire(process.env.ANGELIA_NODE_MODULES + "/");
const { MongoClient, Long, MongoServerError } = require("mongodb");

const options = { serverSelectionTimeoutMS: 8000 };
const server = new Server();
let uri, client, db, things;

before(async () => {
    uri = await server.start();
    client = await MongoClient.connect(uri, options);
});
after(async () => {
    await client.close();
    await server.remove();
});
beforeEach(async () => {
    db = client.db("compat");
    await db.dropDatabase();
    things = db.collection("things");
});

test("inserts, finds, updates, deletes", async () => {
    await things.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, n: i % 7, at: { deep: [i, { k: i }] } })));
    assert.equal(await things.countDocuments({ n: 3 }), 43);
    const ids = (await things.find({ "at.deep.k": { $gte: 290 } }).sort({ _id: -1 }).batchSize(3).toArray()).map((d) => d._id);
    assert.deepEqual(ids, [299, 298, 297, 296, 295, 294, 293, 292, 291, 290]);
    const updated = await things.updateMany({ n: 3 }, { $inc: { n: 100 }, $currentDate: { touched: true } });
    assert.equal(updated.modifiedCount, 43);
    assert.ok((await things.findOne({ n: 103 })).touched instanceof Date);
    assert.equal((await things.deleteMany({ n: 103 })).deletedCount, 43);
    assert.equal(await things.estimatedDocumentCount(), 257);
});

test("keeps integer widths and long values", async () => {
    await things.insertOne({ _id: 1, long: Long.fromString("9007199254740993") });
    const found = await things.findOne({ long: Long.fromString("9007199254740993") }, { promoteLongs: false });
    assert.equal(found.long.toString(), "9007199254740993");
    assert.equal(await things.findOne({ long: 9007199254740992 }), null);
});

test("findOneAndUpdate returns the document before or after", async () => {
    await things.insertOne({ _id: 1, n: 1 });
    assert.deepEqual(await things.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }), { _id: 1, n: 1 });
    assert.deepEqual(await things.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }, { returnDocument: "after" }), { _id: 1, n: 3 });
    assert.equal(await things.findOneAndUpdate({ _id: 9 }, { $inc: { n: 1 } }), null);
});

test("a duplicate key is an error with its key", async () => {
    await things.createIndex({ name: 1 }, { unique: true });
    await things.insertOne({ name: "x" });
    await assert.rejects(things.insertOne({ name: "x" }), (e) => {
        assert.ok(e instanceof MongoServerError);
        assert.equal(e.code, 11000);
        assert.deepEqual([e.keyPattern, e.keyValue], [{ name: 1 }, { name: "x" }]);
        return true;
    });
    const indexes = await things.indexes();
    assert.deepEqual(indexes.map((i) => [i.name, i.unique ?? false]), [["_id_", false], ["name_1", true]]);
});

test("a dropped connection and a retryable error are retried once, with one effect", async () => {
    const failOnce = (data) => client.db("admin").command({ configureFailPoint: "failCommand", mode: { times: 1 }, data });
    await failOnce({ failCommands: ["insert"], closeConnection: true });
    await things.insertOne({ _id: 1, n: 0 });
    await failOnce({ failCommands: ["findAndModify"], errorCode: 10107, errorLabels: ["RetryableWriteError"] });
    assert.equal((await things.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }, { returnDocument: "after" })).n, 1);
    await failOnce({ failCommands: ["find"], closeConnection: true });
    assert.deepEqual(await things.find().toArray(), [{ _id: 1, n: 1 }]);
});

test("messages go packed both ways with zlib", async () => {
    const network = async () => (await client.db("admin").command({ serverStatus: 1 })).network;
    const before = await network();
    const packed = await MongoClient.connect(uri, { ...options, compressors: ["zlib"] });
    const documents = Array.from({ length: 1000 }, (_, i) => ({ _id: i, pad: "x".repeat(1000) }));
    await packed.db("compat").collection("things").insertMany(documents);
    assert.deepEqual(await packed.db("compat").collection("things").find().sort({ _id: 1 }).toArray(), documents);
    await packed.close();
    const after = await network();
    assert.ok(Number(after.bytesIn) - Number(before.bytesIn) < 300_000);
    assert.ok(Number(after.bytesOut) - Number(before.bytesOut) < 300_000);
});

test("a change stream shows inserts, updates, replaces and deletes, then an invalidate", async () => {
    await db.createCollection("things");
    const stream = things.watch([], { fullDocument: "updateLookup", maxAwaitTimeMS: 200 });
    await stream.tryNext();
    await things.insertOne({ _id: 1, a: 1, list: [1] });
    await things.updateOne({ _id: 1 }, { $set: { a: 2 }, $push: { list: 2 } });
    await things.replaceOne({ _id: 1 }, { b: 1 });
    await things.deleteOne({ _id: 1 });
    await things.drop();
    const seen = [];
    while (seen.at(-1)?.operationType !== "invalidate") seen.push(await stream.next());
    await stream.close();
    assert.deepEqual(seen.map((e) => e.operationType), ["insert", "update", "replace", "delete", "drop", "invalidate"]);
    assert.deepEqual(seen[0].fullDocument, { _id: 1, a: 1, list: [1] });
    assert.deepEqual(seen[1].updateDescription.updatedFields, { a: 2, "list.1": 2 });
    assert.deepEqual(seen[2].fullDocument, { _id: 1, b: 1 });
    assert.deepEqual(seen[3].documentKey, { _id: 1 });
    assert.ok(seen.every((e) => e.clusterTime && e._id._data));
});

test("a change stream resumes over a restart of the server", async () => {
    const other = new Server();
    try {
        const uri = await other.start();
        const c = await MongoClient.connect(uri, options);
        const collection = c.db("compat").collection("things");
        const stream = collection.watch([], { maxAwaitTimeMS: 200 });
        await stream.tryNext();
        await collection.insertMany([{ _id: 0 }, { _id: 1 }, { _id: 2 }]);
        const seen = [(await stream.next()).documentKey._id];
        await other.kill();
        await other.start();
        for (let tries = 0; ; ++tries) {
            try {
                await collection.insertOne({ _id: 3 });
                break;
            } catch (e) {
                if (e.code === 11000) break;
                if (tries > 20) throw e;
            }
        }
        while (seen.length < 4) seen.push((await stream.next()).documentKey._id);
        assert.deepEqual(seen, [0, 1, 2, 3]);
        await stream.close();
        await c.close();
    } finally {
        await other.remove();
    }
});
