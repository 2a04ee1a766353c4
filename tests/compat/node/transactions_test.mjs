// Sessions and transactions of the node driver (npm mongodb 6) against `angelia serve`: retries, labels, times, events.
import { test, before, after, beforeEach, afterEach } from "node:test";
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { Server } from "./server.mjs";

const require = createRequire(process.env.ANGELIA_NODE_MODULES + "/");
const { MongoClient, MongoNetworkError } = require("mongodb");

const TRANSIENT = "TransientTransactionError";
const UNKNOWN_COMMIT = "UnknownTransactionCommitResult";
const options = { serverSelectionTimeoutMS: 8000, monitorCommands: true };
const server = new Server();
let client, db, things, sent, sessions;

before(async () => {
    client = await MongoClient.connect(await server.start(), options);
    client.on("commandStarted", (event) => sent.push(event));
});
after(async () => {
    await client.close();
    await server.remove();
});
beforeEach(async () => {
    sent = [];
    sessions = [];
    db = client.db("compat");
    await db.dropDatabase();
    things = db.collection("things");
    await things.insertMany([{ _id: "a", n: 0 }, { _id: "b", n: 0 }]);
    sent.length = 0;
});
afterEach(async () => {
    for (const session of sessions) await session.endSession();
    await admin({ configureFailPoint: "failCommand", mode: "off" });
});

const admin = (command) => client.db("admin").command(command);
const inject = (times, failCommands, data) =>
    admin({ configureFailPoint: "failCommand", mode: { times }, data: { failCommands, ...data } });
const named = (name) => sent.filter((event) => event.commandName === name).map((event) => event.command);
const numbers = async () => Object.fromEntries((await things.find().toArray()).map((d) => [d._id, d.n]));
function startSession(options) {
    const session = client.startSession(options);
    sessions.push(session);
    return session;
}
async function errorOf(promise) {
    try {
        await promise;
    } catch (e) {
        return e;
    }
    return assert.fail("nothing was thrown");
}

test("withTransaction commits what the callback wrote", async () => {
    const session = startSession();
    const result = await session.withTransaction(async () => {
        await things.updateOne({ _id: "a" }, { $inc: { n: -5 } }, { session });
        await things.updateOne({ _id: "b" }, { $inc: { n: 5 } }, { session });
        assert.equal((await things.findOne({ _id: "a" }, { session })).n, -5);
        assert.deepEqual(await numbers(), { a: 0, b: 0 });
        return "moved";
    });
    assert.equal(result, "moved");
    assert.deepEqual(await numbers(), { a: -5, b: 5 });
});

test("an exception of the callback leaves nothing", async () => {
    const session = startSession();
    await assert.rejects(session.withTransaction(async () => {
        await things.insertOne({ _id: "c", n: 1 }, { session });
        throw new RangeError("stop");
    }), RangeError);
    assert.deepEqual(await numbers(), { a: 0, b: 0 });
    assert.equal(named("abortTransaction").length, 1);
});

test("a write conflict of two sessions runs the callback again", async () => {
    const session = startSession(), other = startSession();
    const seen = [];
    await session.withTransaction(async () => {
        const { n } = await things.findOne({ _id: "a" }, { session });
        if (seen.length === 0)
            await other.withTransaction(() => things.updateOne({ _id: "a" }, { $set: { n: 10 } }, { session: other }));
        seen.push(n);
        await things.updateOne({ _id: "a" }, { $set: { n: n + 1 } }, { session });
    });
    assert.deepEqual(seen, [0, 10]);
    assert.deepEqual(await numbers(), { a: 11, b: 0 });
});

test("a commit whose reply is lost is retried with one effect", async () => {
    const lost = [{ closeConnection: true }, { errorCode: 91, errorLabels: ["RetryableWriteError"] },
        { writeConcernError: { code: 91, errmsg: "shutting down", errorLabels: ["RetryableWriteError"] } }];
    for (const [i, data] of lost.entries()) {
        sent.length = 0;
        let calls = 0;
        const session = startSession();
        await inject(1, ["commitTransaction"], data);
        await session.withTransaction(async () => {
            ++calls;
            await things.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session });
        });
        assert.equal(calls, 1);
        assert.deepEqual(await numbers(), { a: i + 1, b: 0 });
        const commits = named("commitTransaction");
        assert.equal(commits.length, 2);
        assert.equal(commits[1].writeConcern.w, "majority");
    }
});

test("a transient error of a commit runs the callback again", async () => {
    const session = startSession();
    let calls = 0;
    await inject(1, ["commitTransaction"], { errorCode: 251, errorLabels: [TRANSIENT] });
    await session.withTransaction(async () => {
        ++calls;
        await things.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session });
    });
    assert.equal(calls, 2);
    assert.deepEqual(await numbers(), { a: 1, b: 0 });
});

test("start, statements, commit, and commit again", async () => {
    const session = startSession();
    session.startTransaction({ readConcern: { level: "snapshot" }, writeConcern: { w: "majority" } });
    await things.insertOne({ _id: "c", n: 1 }, { session });
    await things.deleteOne({ _id: "b" }, { session });
    assert.equal((await things.findOneAndUpdate({ _id: "a" }, { $inc: { n: 7 } }, { session, returnDocument: "after" })).n, 7);
    assert.deepEqual((await things.find({}, { session }).toArray()).map((d) => d._id).sort(), ["a", "c"]);
    await session.commitTransaction();
    await session.commitTransaction();
    assert.deepEqual(await numbers(), { a: 7, c: 1 });
    assert.equal(named("commitTransaction").length, 2);
});

test("abort takes everything back", async () => {
    const session = startSession();
    session.startTransaction();
    await things.updateMany({}, { $inc: { n: 1 } }, { session });
    await things.bulkWrite([{ insertOne: { document: { _id: "c", n: 1 } } }, { deleteOne: { filter: { _id: "a" } } }], { session });
    await session.abortTransaction();
    assert.deepEqual(await numbers(), { a: 0, b: 0 });
});

test("reads keep the moment of the first statement", async () => {
    const session = startSession();
    session.startTransaction();
    assert.equal((await things.findOne({ _id: "a" }, { session })).n, 0);
    await things.updateOne({ _id: "b" }, { $set: { n: 9 } });
    await things.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, n: 9 })));
    assert.deepEqual((await things.find({}, { session, batchSize: 2 }).toArray()).map((d) => d.n), [0, 0]);
    assert.deepEqual(await things.distinct("n", {}, { session }), [0]);
    await session.commitTransaction();
    assert.equal((await numbers()).b, 9);
});

test("a write conflict is transient and ends the transaction", async () => {
    const first = startSession(), second = startSession();
    first.startTransaction();
    second.startTransaction();
    await things.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session: first });
    const conflict = await errorOf(things.updateOne({ _id: "a" }, { $inc: { n: 2 } }, { session: second }));
    assert.deepEqual([conflict.code, conflict.codeName, conflict.hasErrorLabel(TRANSIENT)], [112, "WriteConflict", true]);
    const ended = await errorOf(things.findOne({}, { session: second }));
    assert.deepEqual([ended.code, ended.codeName, ended.hasErrorLabel(TRANSIENT)], [251, "NoSuchTransaction", true]);
    await first.commitTransaction();
    assert.deepEqual(await numbers(), { a: 1, b: 0 });
});

test("a duplicate key is not transient and ends the transaction", async () => {
    const session = startSession();
    session.startTransaction();
    const duplicate = await errorOf(things.insertOne({ _id: "a" }, { session }));
    assert.deepEqual([duplicate.code, duplicate.hasErrorLabel(TRANSIENT)], [11000, false]);
    assert.equal((await errorOf(things.insertOne({ _id: "c" }, { session }))).code, 251);
});

test("labels of statements that failed by fail point", async () => {
    for (const [data, transient] of [[{ errorCode: 112 }, true], [{ errorCode: 11602 }, true], [{ closeConnection: true }, true],
        [{ errorCode: 8 }, false], [{ errorCode: 112, errorLabels: [] }, false]]) {
        sent.length = 0;
        const session = startSession();
        session.startTransaction();
        await inject(1, ["insert"], data);
        const error = await errorOf(things.insertOne({ _id: "c" }, { session }));
        assert.deepEqual([error.hasErrorLabel(TRANSIENT), named("insert").length], [transient, 1], JSON.stringify(data));
        await session.abortTransaction();
    }
});

test("a commit that nobody answers is unknown and can be asked for again", async () => {
    const session = startSession();
    session.startTransaction();
    await things.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session });
    await inject(2, ["commitTransaction"], { closeConnection: true });
    const error = await errorOf(session.commitTransaction());
    assert.ok(error instanceof MongoNetworkError);
    assert.deepEqual([error.hasErrorLabel(UNKNOWN_COMMIT), error.hasErrorLabel(TRANSIENT)], [true, false]);
    await session.commitTransaction();
    assert.deepEqual(await numbers(), { a: 1, b: 0 });
});

test("a causal session reads after what another one wrote", async () => {
    const writer = startSession({ causalConsistency: true }), reader = startSession({ causalConsistency: true });
    for (let i = 0; i < 20; ++i) {
        await things.updateOne({ _id: "a" }, { $set: { n: i } }, { session: writer });
        reader.advanceClusterTime(writer.clusterTime);
        reader.advanceOperationTime(writer.operationTime);
        assert.equal((await things.findOne({ _id: "a" }, { session: reader })).n, i);
    }
    const asked = named("find").map((find) => find.readConcern.afterClusterTime.toBigInt());
    assert.equal(asked.length, 20);
    assert.ok(asked.every((time, i) => i === 0 || time > asked[i - 1]));
});

test("a snapshot session reads one moment", async () => {
    const session = startSession({ snapshot: true });
    assert.equal((await things.findOne({ _id: "a" }, { session })).n, 0);
    await things.updateOne({ _id: "a" }, { $set: { n: 5 } });
    await things.insertOne({ _id: "c", n: 5 });
    assert.deepEqual((await things.find({}, { session }).toArray()).map((d) => d.n), [0, 0]);
    assert.deepEqual(await things.distinct("n", {}, { session }), [0]);
    assert.deepEqual(await things.aggregate([{ $count: "n" }], { session }).toArray(), [{ n: 2 }]);
    const finds = named("find");
    assert.deepEqual(finds[0].readConcern, { level: "snapshot" });
    assert.ok(finds[1].readConcern.atClusterTime);
    assert.deepEqual((await things.find({}, { session: startSession({ snapshot: true }) }).toArray()).map((d) => d.n), [5, 0, 5]);
});

test("a change stream is resumed after a failed getMore", async () => {
    const stream = things.watch([], { maxAwaitTimeMS: 100 });
    await stream.tryNext();
    const see = async (_id) => {
        await things.insertOne({ _id });
        return (await stream.next()).documentKey._id;
    };
    assert.equal(await see(1), 1);
    for (const [i, data] of [{ errorCode: 10107 }, { errorCode: 91 }, { closeConnection: true }].entries()) {
        await admin({ configureFailPoint: "failGetMoreAfterCursorCheckout", mode: { times: 1 }, data });
        assert.equal(await see(10 + i), 10 + i);
    }
    const opened = named("aggregate").map((aggregate) => aggregate.pipeline[0].$changeStream);
    assert.equal(opened.length, 4);
    assert.ok(opened.slice(1).every((stage) => stage.resumeAfter));
    await stream.close();
});

test("a stream shows a transaction whole, in order, and only after its commit", async () => {
    await db.createCollection("others");
    const stream = db.watch([], { maxAwaitTimeMS: 100 });
    await stream.tryNext();
    const session = startSession();
    session.startTransaction();
    await things.insertOne({ _id: "c" }, { session });
    await db.collection("others").insertOne({ _id: "d" }, { session });
    await things.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session });
    await things.deleteOne({ _id: "b" }, { session });
    assert.equal(await stream.tryNext(), null);
    await session.commitTransaction();
    await things.insertOne({ _id: "e" });
    const events = [];
    while (events.length < 5) events.push(await stream.next());
    await stream.close();
    assert.deepEqual(events.map((e) => [e.operationType, e.documentKey._id]),
        [["insert", "c"], ["insert", "d"], ["update", "a"], ["delete", "b"], ["insert", "e"]]);
    for (const event of events.slice(0, 4)) {
        assert.equal(event.lsid.id.toString("hex"), session.id.id.toString("hex"));
        assert.deepEqual(Number(event.txnNumber), Number(named("commitTransaction")[0].txnNumber));
        assert.ok(event.clusterTime.equals(events[0].clusterTime));
    }
    assert.equal(events[4].lsid, undefined);
    const rest = db.watch([], { resumeAfter: events[1]._id, maxAwaitTimeMS: 100 });
    assert.deepEqual([await rest.next(), await rest.next(), await rest.next()].map((e) => e._id), events.slice(2).map((e) => e._id));
    await rest.close();
});

test("transactions create collections", async () => {
    const session = startSession();
    await session.withTransaction(async () => {
        await db.collection("implicit").insertOne({ _id: 1 }, { session });
        await db.createCollection("explicit", { session });
        await db.collection("explicit").insertOne({ _id: 1 }, { session });
    });
    session.startTransaction();
    await db.collection("never").insertOne({}, { session });
    await session.abortTransaction();
    const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map((c) => c.name);
    assert.deepEqual(names.sort(), ["explicit", "implicit", "things"]);
});

test("what is refused in a transaction", async () => {
    for (const command of [{ count: "things" }, { drop: "things" }, { listCollections: 1 }, { listIndexes: "things" },
        { dropIndexes: "things", index: "*" }]) {
        const session = startSession();
        session.startTransaction();
        await things.insertOne({ n: 1 }, { session });
        const error = await errorOf(db.command(command, { session }));
        assert.deepEqual([error.code, error.codeName, error.hasErrorLabel(TRANSIENT)],
            [263, "OperationNotSupportedInTransaction", false], JSON.stringify(command));
        await session.abortTransaction();
    }
    assert.deepEqual(await numbers(), { a: 0, b: 0 });
});

test("commands that end sessions abort their transactions", async () => {
    for (const command of [() => ({ killAllSessions: [] }), (session) => ({ killSessions: [session.id] }),
        (session) => ({ endSessions: [session.id] })]) {
        const session = startSession();
        session.startTransaction();
        await things.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session });
        await admin(command(session));
        const error = await errorOf(things.findOne({}, { session }));
        assert.deepEqual([error.code, error.hasErrorLabel(TRANSIENT)], [251, true]);
    }
    const session = startSession();
    session.startTransaction();
    await things.updateOne({ _id: "a" }, { $inc: { n: 1 } }, { session });
    await session.endSession();
    await things.updateOne({ _id: "a" }, { $inc: { n: 10 } });
    assert.deepEqual(await numbers(), { a: 10, b: 0 });
});

test("a committed transaction survives kill -9 and can be committed again", async () => {
    const other = new Server();
    try {
        const c = await MongoClient.connect(await other.start(), options);
        const collection = await c.db("compat").createCollection("things");
        const kept = c.startSession(), lost = c.startSession();
        lost.startTransaction();
        await collection.insertOne({ _id: "lost" }, { session: lost });
        kept.startTransaction();
        await collection.insertOne({ _id: "kept" }, { session: kept });
        await kept.commitTransaction();
        await other.kill();
        await other.start();
        await kept.commitTransaction();
        const error = await errorOf(lost.commitTransaction());
        assert.deepEqual([error.code, error.hasErrorLabel(TRANSIENT)], [251, true]);
        assert.deepEqual(await collection.find().toArray(), [{ _id: "kept" }]);
        await kept.endSession();
        await lost.endSession();
        await c.close();
    } finally {
        await other.remove();
    }
});
