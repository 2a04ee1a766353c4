// The Java driver (mongodb-driver-sync) against `angelia serve`: daily work first. Sessions and transactions are in DriverTransactions.

import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gte;
import static com.mongodb.client.model.Filters.in;
import static com.mongodb.client.model.Updates.combine;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.push;
import static com.mongodb.client.model.Updates.set;

import com.mongodb.ConnectionString;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.changestream.FullDocument;
import com.mongodb.event.CommandListener;
import com.mongodb.event.CommandStartedEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.bson.BsonDocument;
import org.bson.Document;

public class DriverSync {
    static final List<BsonDocument> sent = new CopyOnWriteArrayList<>();
    static MongoClient client;
    static MongoDatabase db;
    static MongoCollection<Document> things;

    static MongoClient connect(String uri) {
        return MongoClients.create(MongoClientSettings.builder()
            .applyConnectionString(new ConnectionString(uri))
            .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(20, TimeUnit.SECONDS))
            .addCommandListener(new CommandListener() {
                @Override
                public void commandStarted(CommandStartedEvent event) {
                    sent.add(event.getCommand().clone());
                }
            }).build());
    }

    static List<BsonDocument> named(String command) {
        return sent.stream().filter(d -> d.getFirstKey().equals(command)).toList();
    }

    static Document doc(Object... keysAndValues) {
        Document document = new Document();
        for (int i = 0; i < keysAndValues.length; i += 2) document.append((String) keysAndValues[i], keysAndValues[i + 1]);
        return document;
    }

    static Document admin(Document command) {
        return client.getDatabase("admin").runCommand(command);
    }

    static void inject(int times, String command, Document data) {
        admin(doc("configureFailPoint", "failCommand", "mode", doc("times", times), "data", data.append("failCommands", List.of(command))));
    }

    static <T> List<T> list(Iterable<T> documents) {
        List<T> all = new ArrayList<>();
        documents.forEach(all::add);
        return all;
    }

    static void clean() {
        admin(doc("configureFailPoint", "failCommand", "mode", "off"));
        db = client.getDatabase("compat");
        db.drop();
        things = db.getCollection("things");
        sent.clear();
    }

    static void crud() {
        things.insertMany(IntStream.range(0, 300).mapToObj(i -> doc("_id", i, "n", i % 7, "long", 1L << 40)).toList());
        Check.equal(43L, things.countDocuments(eq("n", 3)));
        Check.equal(300L, things.estimatedDocumentCount());
        Check.equal(List.of(299, 298, 297), list(things.find(gte("_id", 290)).sort(Sorts.descending("_id")).limit(3).batchSize(2)
            .map(d -> d.getInteger("_id"))));
        Check.equal(300, list(things.find().batchSize(17)).size());
        Check.equal(1L << 40, things.find(eq("_id", 1)).first().get("long"));
        Check.equal(43L, things.updateMany(eq("n", 3), inc("n", 100)).getModifiedCount());
        Check.equal(43L, things.deleteMany(eq("n", 103)).getDeletedCount());
        Check.equal(999, things.updateOne(eq("_id", 999), set("n", 1), new UpdateOptions().upsert(true)).getUpsertedId().asInt32().getValue());
        Check.equal(1L, things.replaceOne(eq("_id", 999), doc("whole", 1)).getModifiedCount());
        Check.equal(doc("_id", 999, "whole", 1), things.find(eq("_id", 999)).first());
        Check.equal(doc("_id", 0, "n", 5, "l", List.of(1), "long", 1L << 40).get("l"),
            things.findOneAndUpdate(eq("_id", 0), combine(inc("n", 5), push("l", 1)),
                new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER)).get("l"));
        Check.equal(0, things.findOneAndDelete(eq("_id", 0)).get("_id"));
        Check.equal(null, things.findOneAndDelete(eq("_id", 0)));
        var bulk = things.bulkWrite(List.of(new InsertOneModel<>(doc("_id", "x")), new UpdateOneModel<>(eq("_id", "x"), set("n", 1)),
            new DeleteOneModel<>(eq("_id", 1))));
        Check.equal("1 1 1", bulk.getInsertedCount() + " " + bulk.getModifiedCount() + " " + bulk.getDeletedCount());
        Check.equal(List.of(doc("count", 2)), list(things.aggregate(List.of(Aggregates.match(in("_id", "x", 2)), Aggregates.count()))));
        Check.equal(List.of("compat"), list(client.listDatabaseNames()).stream().filter("compat"::equals).toList());
    }

    static void indexes() {
        Check.equal("name_1", things.createIndex(Indexes.ascending("name"), new IndexOptions().unique(true)));
        things.createIndex(Indexes.compoundIndex(Indexes.ascending("a"), Indexes.descending("b.c")));
        things.createIndex(Indexes.ascending("at"), new IndexOptions().expireAfter(60L, TimeUnit.SECONDS));
        Check.equal(List.of("_id_", "a_1_b.c_-1", "at_1", "name_1"), list(things.listIndexes()).stream().map(d -> d.getString("name")).sorted().toList());
        things.dropIndex("at_1");
        Check.equal(3, list(things.listIndexes()).size());
    }

    static void duplicates() {
        things.createIndex(Indexes.ascending("name"), new IndexOptions().unique(true));
        things.insertOne(doc("_id", 1, "name", "x"));
        var duplicate = (MongoWriteException) Check.fails("E11000 duplicate key", () -> things.insertOne(doc("name", "x")));
        Check.equal(11000, duplicate.getError().getCode());
        var bulk = (MongoBulkWriteException) Check.fails("E11000", () ->
            things.insertMany(List.of(doc("_id", 1), doc("_id", 2), doc("_id", 1)), new InsertManyOptions().ordered(false)));
        Check.equal("[0, 2] 1", bulk.getWriteErrors().stream().map(e -> e.getIndex()).toList() + " " + bulk.getWriteResult().getInsertedCount());
    }

    static void retriedWrites() {
        inject(1, "insert", doc("closeConnection", true));
        things.insertOne(doc("_id", 1, "n", 0));
        inject(1, "findAndModify", doc("errorCode", 10107, "errorLabels", List.of("RetryableWriteError")));
        things.findOneAndUpdate(eq("_id", 1), inc("n", 1));
        inject(1, "update", doc("writeConcernError", doc("code", 91, "errmsg", "x", "errorLabels", List.of("RetryableWriteError"))));
        Check.equal(1L, things.updateOne(eq("_id", 1), inc("n", 1)).getModifiedCount());
        inject(1, "find", doc("closeConnection", true));
        Check.equal(List.of(doc("_id", 1, "n", 2)), list(things.find()));
        inject(1, "insert", doc("errorCode", 8));
        Check.fails("", () -> things.insertOne(doc("_id", 2)));
        Check.equal(1L, things.countDocuments());
    }

    static void watches() {
        things.insertOne(doc("_id", 0));
        try (var stream = things.watch().fullDocument(FullDocument.UPDATE_LOOKUP).maxAwaitTime(200, TimeUnit.MILLISECONDS).cursor()) {
            things.insertOne(doc("_id", 1, "a", 1));
            things.updateOne(eq("_id", 1), set("a", 2));
            things.replaceOne(eq("_id", 1), doc("b", 1));
            things.deleteOne(eq("_id", 1));
            things.drop();
            List<String> seen = new ArrayList<>();
            while (!seen.contains("invalidate")) {
                var event = stream.next();
                seen.add(event.getOperationType().getValue());
                if (seen.size() == 2) Check.equal(2, event.getUpdateDescription().getUpdatedFields().getInt32("a").getValue());
            }
            Check.equal(List.of("insert", "update", "replace", "delete", "drop", "invalidate"), seen);
        }
    }

    static void watchResumesAfterErrors() {
        try (var stream = things.watch().maxAwaitTime(100, TimeUnit.MILLISECONDS).cursor()) {
            int id = 0;
            for (Document data : List.of(doc("errorCode", 10107), doc("errorCode", 91), doc("closeConnection", true))) {
                admin(doc("configureFailPoint", "failGetMoreAfterCursorCheckout", "mode", doc("times", 1), "data", data));
                things.insertOne(doc("_id", id));
                Check.equal(id++, stream.next().getDocumentKey().getInt32("_id").getValue());
            }
        }
        Check.equal(4L, named("aggregate").stream().filter(a -> a.getArray("pipeline").get(0).asDocument().containsKey("$changeStream")).count());
    }

    static void watchResumesAfterRestart() throws Exception {
        try (Server server = new Server(); MongoClient own = connect(server.start())) {
            var collection = own.getDatabase("compat").getCollection("things");
            try (var stream = collection.watch().maxAwaitTime(200, TimeUnit.MILLISECONDS).cursor()) {
                collection.insertMany(IntStream.range(0, 10).mapToObj(i -> doc("_id", i)).toList());
                List<Integer> seen = new ArrayList<>();
                for (int i = 0; i < 4; i++) seen.add(stream.next().getDocumentKey().getInt32("_id").getValue());
                server.kill();
                server.start();
                for (int tries = 0; collection.countDocuments(eq("_id", 10)) == 0; tries++) insertOrFailOften(collection, tries);
                while (seen.size() < 11) seen.add(stream.next().getDocumentKey().getInt32("_id").getValue());
                Check.equal(IntStream.range(0, 11).boxed().toList(), seen);
            }
        }
    }

    /** The first writes after a restart may meet connections that died with the old server. */
    static void insertOrFailOften(MongoCollection<Document> collection, int tries) {
        try {
            collection.insertOne(doc("_id", 10));
        } catch (MongoException e) {
            if (tries > 20) throw e;
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Server server = new Server()) {
            client = connect(server.start());
            Check.run("inserts, finds, updates, deletes", DriverSync::clean, DriverSync::crud);
            Check.run("indexes are made, listed, dropped", DriverSync::clean, DriverSync::indexes);
            Check.run("a duplicate key is an error", DriverSync::clean, DriverSync::duplicates);
            Check.run("a failed write is retried with one effect", DriverSync::clean, DriverSync::retriedWrites);
            Check.run("a watch shows each kind of event", DriverSync::clean, DriverSync::watches);
            Check.run("a watch is resumed after a failed getMore", DriverSync::clean, DriverSync::watchResumesAfterErrors);
            Check.run("a watch is resumed over kill -9", DriverSync::clean, DriverSync::watchResumesAfterRestart);
            DriverTransactions.runAll();
            client.close();
        }
        System.exit(Check.summary());
    }
}
