// What the node driver does when something fails; every fault is injected with a fail point.
import { test, before, after, beforeEach, afterEach } from "node:test";
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { Server } from "./server.mjs";

const require = createRequire(process.env.ANGELIA_NODE_MODULES + "/");
const { MongoClient } = require("mongodb");

const server = new Server();
let admin, client, things, sent;

before(async () => {
    const uri = await server.start();
    // Faults are set through a client of their own, so that the other one's connections see nothing of it.
    admin = (await MongoClient.connect(uri, { serverSelectionTimeoutMS: 20000 })).db("admin");
    client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 20000, monitorCommands: true });
    client.on("commandStarted", (event) => sent.push(event.commandName));
});
after(async () => {
    await client.close();
    await admin.client.close();
    await server.remove();
});
const points = ["failCommand", "onPrimaryTransactionalWrite", "failGetMoreAfterCursorCheckout"];
const off = async () => {
    for (const point of points) await admin.command({ configureFailPoint: point, mode: "off" });
};
const fresh = async () => {
    sent = [];
    await client.db("compat").dropDatabase();
    things = client.db("compat").collection("things");
    await things.insertMany([{ _id: 0, n: 0 }, { _id: 1, n: 0 }, { _id: 2, n: 0 }]);
    sent = [];
};
beforeEach(fresh);
afterEach(off);
const fail = (data, mode = { times: 1 }, point = "failCommand") => admin.command({ configureFailPoint: point, mode, data });
const documents = async () => (await admin.client.db("compat").collection("things").find().sort({ _id: 1 }).toArray()).map((d) => [d._id, d.n]);

const writes = {
    insert: [() => things.insertOne({ _id: 9, n: 0 }).then((r) => r.insertedId), 9, [[0, 0], [1, 0], [2, 0], [9, 0]]],
    update: [() => things.updateOne({ _id: 1 }, { $inc: { n: 1 } }).then((r) => r.modifiedCount), 1, [[0, 0], [1, 1], [2, 0]]],
    delete: [() => things.deleteOne({ _id: 2 }).then((r) => r.deletedCount), 1, [[0, 0], [1, 0]]],
    findAndModify: [() => things.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }, { returnDocument: "after" }), { _id: 1, n: 1 }, [[0, 0], [1, 1], [2, 0]]],
};
const eachWrite = async (inject) => {
    for (const [name, [write, expected, left]] of Object.entries(writes)) {
        await fresh();
        await inject(name);
        assert.deepEqual(await write(), expected, name);
        assert.deepEqual(sent, [name, name]);
        assert.deepEqual(await documents(), left, name);
    }
};

test("a write whose connection breaks is sent twice and done once", () => eachWrite((name) => fail({ failCommands: [name], closeConnection: true })));
test("a write that meets a shutdown is sent twice and done once", () => eachWrite((name) => fail({ failCommands: [name], errorCode: 91 })));
test("a label makes any error retryable", () => eachWrite((name) => fail({ failCommands: [name], errorCode: 2, errorLabels: ["RetryableWriteError"] })));
test("a retriable write concern error comes after the write", () => eachWrite((name) => fail({ failCommands: [name], writeConcernError: { code: 91, errmsg: "x" } })));
test("a connection that breaks behind the commit leaves one effect", () => eachWrite(() => fail({}, { times: 1 }, "onPrimaryTransactionalWrite")));
test("a write that fails before its commit leaves one effect", () =>
    eachWrite(() => fail({ failBeforeCommitExceptionCode: 1 }, { times: 1 }, "onPrimaryTransactionalWrite")));

test("without the label nothing is retried", async () => {
    await fail({ failCommands: ["insert"], errorCode: 91, errorLabels: [] });
    await assert.rejects(things.insertOne({ _id: 9, n: 0 }), (e) => e.code === 91 && e.codeName === "ShutdownInProgress");
    assert.deepEqual(sent, ["insert"]);
    assert.deepEqual(await documents(), [[0, 0], [1, 0], [2, 0]]);
});

test("a write concern error without a retriable code is the application's", async () => {
    await fail({ failCommands: ["insert"], writeConcernError: { code: 64, errmsg: "x", errInfo: { a: 1 } } });
    await assert.rejects(things.insertOne({ _id: 9, n: 0 }), (e) => e.code === 64 && e.result.writeConcernError.errInfo.a === 1);
    assert.equal((await documents()).length, 4);
});

const reads = {
    find: () => things.findOne({ _id: 1 }),
    aggregate: () => things.aggregate([{ $match: { _id: 1 } }]).toArray(),
    count: () => things.estimatedDocumentCount(),
    distinct: () => things.distinct("_id"),
    listIndexes: () => things.listIndexes().toArray(),
    listCollections: () => client.db("compat").listCollections().toArray(),
    listDatabases: () => client.db("admin").admin().listDatabases({ nameOnly: true }),
};
test("reads are retried once", async () => {
    for (const [name, read] of Object.entries(reads)) {
        const plain = ({ operationTime, $clusterTime, ...rest }) => rest;
        const expected = await read();
        for (const fault of [{ closeConnection: true }, { errorCode: 6 }, { errorCode: 11600 }, { errorCode: 13436 }]) {
            sent = [];
            await fail({ failCommands: [name], ...fault });
            const got = await read();
            assert.deepEqual(name === "listDatabases" ? plain(got) : got, name === "listDatabases" ? plain(expected) : expected, name);
            assert.deepEqual(sent, [name, name]);
        }
    }
    await fail({ failCommands: ["find"], errorCode: 8 });
    await assert.rejects(things.findOne(), (e) => e.codeName === "UnknownError");
});

test("a change stream resumes after faults behind the checkout and by label, and only then", async () => {
    const stream = things.watch([], { maxAwaitTimeMS: 100 });
    await stream.tryNext();
    const seen = [];
    const next = async (...ids) => {
        for (const id of ids) await things.insertOne({ _id: id });
        for (const _ of ids) seen.push((await stream.next()).documentKey._id);
    };
    for (const [i, [data, point]] of [
        [{ errorCode: 6 }, "failGetMoreAfterCursorCheckout"],
        [{ errorCode: 10107 }, "failGetMoreAfterCursorCheckout"],
        [{ errorCode: 43 }, "failGetMoreAfterCursorCheckout"],
        [{ closeConnection: true }, "failGetMoreAfterCursorCheckout"],
        [{ failCommands: ["getMore"], errorCode: 50, errorLabels: ["ResumableChangeStreamError"] }, "failCommand"],
    ].entries()) {
        await fail(data, { times: 1 }, point);
        await next(100 + 2 * i, 101 + 2 * i);
        assert.equal(sent.filter((name) => name === "aggregate").length, i + 2, JSON.stringify(data));
    }
    assert.deepEqual(seen, Array.from({ length: 10 }, (_, i) => 100 + i));
    await fail({ failCommands: ["getMore"], errorCode: 6 });
    await assert.rejects(stream.next(), (e) => e.code === 6 && !e.hasErrorLabel("ResumableChangeStreamError"));
    await stream.close();
});
