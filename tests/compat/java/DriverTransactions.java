// Sessions and transactions of the Java driver: retries, labels, times, events.

import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.set;

import com.mongodb.ClientSessionOptions;
import com.mongodb.MongoException;
import com.mongodb.ReadConcern;
import com.mongodb.TransactionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.bson.BsonTimestamp;
import org.bson.Document;

final class DriverTransactions {
    private static final String TRANSIENT = MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL;
    private static final String UNKNOWN_COMMIT = MongoException.UNKNOWN_TRANSACTION_COMMIT_RESULT_LABEL;

    private static MongoCollection<Document> things;

    private static void clean() {
        DriverSync.clean();
        things = DriverSync.things;
        things.insertMany(List.of(doc("_id", "a", "n", 0), doc("_id", "b", "n", 0)));
        DriverSync.sent.clear();
    }

    private static Document doc(Object... keysAndValues) {
        return DriverSync.doc(keysAndValues);
    }

    private static ClientSession session() {
        return DriverSync.client.startSession();
    }

    private static ClientSession session(boolean snapshot) {
        return DriverSync.client.startSession(ClientSessionOptions.builder().snapshot(snapshot).build());
    }

    private static Map<Object, Object> numbers() {
        Map<Object, Object> all = new TreeMap<>();
        things.find().forEach(d -> all.put(d.get("_id"), d.get("n")));
        return all;
    }

    private static int number(ClientSession session, String id) {
        return things.find(session, eq("_id", id)).first().getInteger("n");
    }

    /** The error's code and whether it is transient. */
    private static void fails(int code, boolean isTransient, Check.Body body) {
        MongoException error = (MongoException) Check.fails("", body);
        Check.equal(code + " " + isTransient, error.getCode() + " " + error.hasErrorLabel(TRANSIENT));
    }

    private static void withTransaction() {
        try (ClientSession session = session()) {
            String result = session.withTransaction(() -> {
                things.updateOne(session, eq("_id", "a"), inc("n", -5));
                things.updateOne(session, eq("_id", "b"), inc("n", 5));
                Check.equal(-5, number(session, "a"));
                Check.equal(Map.of("a", 0, "b", 0), numbers());
                return "moved";
            });
            Check.equal("moved", result);
            Check.equal(Map.of("a", -5, "b", 5), numbers());
            Check.fails("stop", () -> session.withTransaction(() -> {
                things.insertOne(session, doc("_id", "c", "n", 1));
                throw new IllegalStateException("stop");
            }));
            Check.equal(Map.of("a", -5, "b", 5), numbers());
        }
    }

    private static void conflictRunsAgain() {
        List<Integer> seen = new ArrayList<>();
        try (ClientSession session = session(); ClientSession other = session()) {
            session.withTransaction(() -> {
                int n = number(session, "a");
                if (seen.isEmpty()) other.withTransaction(() -> things.updateOne(other, eq("_id", "a"), set("n", 10)));
                seen.add(n);
                return things.updateOne(session, eq("_id", "a"), set("n", n + 1));
            });
        }
        Check.equal(List.of(0, 10), seen);
        Check.equal(Map.of("a", 11, "b", 0), numbers());
    }

    private static void lostCommit() {
        int expected = 0;
        for (Document data : List.of(doc("closeConnection", true), doc("errorCode", 91, "errorLabels", List.of("RetryableWriteError")),
                 doc("writeConcernError", doc("code", 91, "errmsg", "x", "errorLabels", List.of("RetryableWriteError"))))) {
            DriverSync.sent.clear();
            DriverSync.inject(1, "commitTransaction", data);
            try (ClientSession session = session()) {
                session.withTransaction(() -> things.updateOne(session, eq("_id", "a"), inc("n", 1)));
            }
            Check.equal(Map.of("a", ++expected, "b", 0), numbers());
            Check.equal(1, DriverSync.named("update").size());
            Check.equal(2, DriverSync.named("commitTransaction").size());
        }
    }

    private static void explicit() {
        try (ClientSession session = session()) {
            session.startTransaction(TransactionOptions.builder().readConcern(ReadConcern.SNAPSHOT).writeConcern(WriteConcern.MAJORITY).build());
            things.insertOne(session, doc("_id", "c", "n", 1));
            things.deleteOne(session, eq("_id", "b"));
            Check.equal(0, things.findOneAndUpdate(session, eq("_id", "a"), inc("n", 7)).get("n"));
            session.commitTransaction();
            session.commitTransaction();
            Check.equal(Map.of("a", 7, "c", 1), numbers());
            session.startTransaction();
            things.deleteMany(session, doc());
            session.abortTransaction();
            Check.equal(2, numbers().size());
            session.startTransaction();
            Check.equal(7, number(session, "a"));
            things.updateOne(eq("_id", "a"), set("n", 9));
            Check.equal(7, number(session, "a"));
            session.commitTransaction();
        }
    }

    private static void labels() {
        try (ClientSession first = session(); ClientSession second = session()) {
            first.startTransaction();
            second.startTransaction();
            things.updateOne(first, eq("_id", "a"), inc("n", 1));
            fails(112, true, () -> things.updateOne(second, eq("_id", "a"), inc("n", 2)));
            fails(251, true, () -> number(second, "a"));
            second.abortTransaction();
            fails(11000, false, () -> things.insertOne(first, doc("_id", "b")));
            first.abortTransaction();
            first.startTransaction();
            DriverSync.inject(1, "insert", doc("errorCode", 11602));
            fails(11602, true, () -> things.insertOne(first, doc("_id", "c")));
            first.abortTransaction();
            first.startTransaction();
            DriverSync.inject(1, "insert", doc("closeConnection", true));
            Check.that(((MongoException) Check.fails("", () -> things.insertOne(first, doc("_id", "c")))).hasErrorLabel(TRANSIENT), "transient");
            first.abortTransaction();
        }
        Check.equal(Map.of("a", 0, "b", 0), numbers());
    }

    private static void unknownCommit() {
        try (ClientSession session = session()) {
            session.startTransaction();
            things.updateOne(session, eq("_id", "a"), inc("n", 1));
            DriverSync.inject(2, "commitTransaction", doc("closeConnection", true));
            MongoException error = (MongoException) Check.fails("", session::commitTransaction);
            Check.equal("true false", error.hasErrorLabel(UNKNOWN_COMMIT) + " " + error.hasErrorLabel(TRANSIENT));
            session.commitTransaction();
        }
        Check.equal(Map.of("a", 1, "b", 0), numbers());
    }

    private static void causal() {
        try (ClientSession writer = session(); ClientSession reader = session()) {
            for (int i = 0; i < 20; i++) {
                things.updateOne(writer, eq("_id", "a"), set("n", i));
                reader.advanceClusterTime(writer.getClusterTime());
                reader.advanceOperationTime(writer.getOperationTime());
                Check.equal(i, number(reader, "a"));
            }
        }
        List<BsonTimestamp> asked = DriverSync.named("find").stream().map(f -> f.getDocument("readConcern").getTimestamp("afterClusterTime")).toList();
        Check.equal(20L, asked.stream().distinct().count());
    }

    private static void snapshots() {
        try (ClientSession session = session(true); ClientSession later = session(true)) {
            Check.equal(0, number(session, "a"));
            things.updateOne(eq("_id", "a"), set("n", 5));
            Check.equal(0, number(session, "a"));
            Check.equal(List.of(0), DriverSync.list(things.distinct(session, "n", Integer.class)));
            Check.equal(5, number(later, "a"));
        }
        Check.that(DriverSync.named("find").get(1).getDocument("readConcern").containsKey("atClusterTime"), "atClusterTime is sent");
    }

    private static void events() {
        DriverSync.db.createCollection("others");
        List<ChangeStreamDocument<Document>> events = new ArrayList<>();
        try (ClientSession session = session();
             var stream = DriverSync.db.watch().maxAwaitTime(100, TimeUnit.MILLISECONDS).cursor()) {
            session.startTransaction();
            things.insertOne(session, doc("_id", "c"));
            DriverSync.db.getCollection("others").insertOne(session, doc("_id", "d"));
            things.deleteOne(session, eq("_id", "b"));
            Check.equal(null, stream.tryNext());
            session.commitTransaction();
            things.insertOne(doc("_id", "e"));
            while (events.size() < 4) events.add(stream.next());
            for (var event : events.subList(0, 3)) {
                Check.equal(session.getServerSession().getIdentifier().get("id"), event.getLsid().get("id"));
                Check.equal(session.getServerSession().getTransactionNumber(), event.getTxnNumber().getValue());
                Check.equal(events.get(0).getClusterTime(), event.getClusterTime());
            }
        }
        Check.equal("[c, d, b, e]", events.stream().map(e -> e.getDocumentKey().getString("_id").getValue()).toList().toString());
        Check.equal(null, events.get(3).getLsid());
        try (var stream = DriverSync.db.watch().resumeAfter(events.get(0).getResumeToken()).cursor()) {
            for (var event : events.subList(1, 4)) Check.equal(event.getResumeToken(), stream.next().getResumeToken());
        }
    }

    private static void structure() {
        try (ClientSession session = session()) {
            session.withTransaction(() -> {
                DriverSync.db.getCollection("implicit").insertOne(session, doc("_id", 1));
                DriverSync.db.createCollection(session, "explicit");
                return null;
            });
            session.startTransaction();
            DriverSync.db.getCollection("never").insertOne(session, doc("_id", 1));
            session.abortTransaction();
            Check.equal(List.of("explicit", "implicit", "things"), DriverSync.list(DriverSync.db.listCollectionNames()).stream().sorted().toList());
            for (Document command : List.of(doc("count", "things"), doc("drop", "things"), doc("listCollections", 1))) {
                session.startTransaction();
                things.insertOne(session, doc("_id", "c"));
                fails(263, false, () -> DriverSync.db.runCommand(session, command));
                session.abortTransaction();
            }
        }
        Check.equal(Map.of("a", 0, "b", 0), numbers());
    }

    private static void ends() {
        try (ClientSession killed = session(); ClientSession ended = session(); ClientSession closed = session()) {
            killed.startTransaction();
            things.updateOne(killed, eq("_id", "a"), inc("n", 1));
            DriverSync.admin(doc("killAllSessions", List.of()));
            fails(251, true, () -> number(killed, "a"));
            ended.startTransaction();
            things.updateOne(ended, eq("_id", "a"), inc("n", 1));
            DriverSync.admin(doc("endSessions", List.of(ended.getServerSession().getIdentifier())));
            fails(251, true, () -> number(ended, "a"));
            closed.startTransaction();
            things.updateOne(closed, eq("_id", "a"), inc("n", 1));
        }
        things.updateOne(eq("_id", "a"), inc("n", 10));
        Check.equal(Map.of("a", 10, "b", 0), numbers());
    }

    private static void restart() throws Exception {
        try (Server server = new Server(); MongoClient own = DriverSync.connect(server.start())) {
            var database = own.getDatabase("compat");
            database.createCollection("things");
            var collection = database.getCollection("things");
            try (ClientSession kept = own.startSession(); ClientSession lost = own.startSession()) {
                lost.startTransaction();
                collection.insertOne(lost, doc("_id", "lost"));
                kept.startTransaction();
                collection.insertOne(kept, doc("_id", "kept"));
                kept.commitTransaction();
                server.kill();
                server.start();
                kept.commitTransaction();
                fails(251, true, lost::commitTransaction);
                Check.equal(List.of(doc("_id", "kept")), DriverSync.list(collection.find()));
            }
        }
    }

    static void runAll() {
        Check.run("withTransaction commits, and leaves nothing after an exception", DriverTransactions::clean, DriverTransactions::withTransaction);
        Check.run("a write conflict of two sessions runs the callback again", DriverTransactions::clean, DriverTransactions::conflictRunsAgain);
        Check.run("a commit whose reply is lost is retried with one effect", DriverTransactions::clean, DriverTransactions::lostCommit);
        Check.run("start, commit, commit again, abort", DriverTransactions::clean, DriverTransactions::explicit);
        Check.run("labels of errors in a transaction", DriverTransactions::clean, DriverTransactions::labels);
        Check.run("a commit that nobody answers is unknown", DriverTransactions::clean, DriverTransactions::unknownCommit);
        Check.run("a causal session reads after what another one wrote", DriverTransactions::clean, DriverTransactions::causal);
        Check.run("a snapshot session reads one moment", DriverTransactions::clean, DriverTransactions::snapshots);
        Check.run("a stream shows a transaction whole", DriverTransactions::clean, DriverTransactions::events);
        Check.run("transactions create collections; what is refused", DriverTransactions::clean, DriverTransactions::structure);
        Check.run("what ends a session aborts its transaction", DriverTransactions::clean, DriverTransactions::ends);
        Check.run("a committed transaction survives kill -9", DriverTransactions::clean, DriverTransactions::restart);
    }
}
