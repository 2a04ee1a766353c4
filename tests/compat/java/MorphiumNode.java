// A real Morphium node against `angelia serve`, over Morphium's own wire driver: connects, writes, reads, watches, sends messages.
// Prints one line per case, ends with 0 when all of them passed.

import de.caluga.morphium.Morphium;
import de.caluga.morphium.MorphiumConfig;
import de.caluga.morphium.annotations.Embedded;
import de.caluga.morphium.annotations.Entity;
import de.caluga.morphium.annotations.Id;
import de.caluga.morphium.annotations.Index;
import de.caluga.morphium.changestream.ChangeStreamEvent;
import de.caluga.morphium.changestream.ChangeStreamMonitor;
import de.caluga.morphium.driver.MorphiumId;
import de.caluga.morphium.driver.wire.PooledDriver;
import de.caluga.morphium.messaging.Messaging;
import de.caluga.morphium.messaging.MessageListener;
import de.caluga.morphium.messaging.Msg;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class MorphiumNode {
    @Entity(collectionName = "orders")
    @Index({"state,n:-1"})
    public static class Order {
        @Id public MorphiumId id;
        @Index(options = {"unique:1"}) public String name;
        public String state;
        public int n;
        public List<Line> lines = new ArrayList<>();
    }

    @Embedded
    public static class Line {
        public String article;
        public long pieces;
    }

    static final int WAIT_S = 20;
    static String hostAndPort;
    static Morphium morphium;

    static Morphium connect() {
        MorphiumConfig config = new MorphiumConfig();
        config.setDatabase("compat");
        config.addHostToSeed(hostAndPort);
        config.setDriverName(PooledDriver.driverName);
        config.setMaxWaitTime(10000);
        config.setMinConnections(4);  // Morphium 5 loses a transaction's first statement when it must open a connection for it
        return new Morphium(config);
    }

    static Order order(String name, String state, int n) {
        Order order = new Order();
        order.name = name;
        order.state = state;
        order.n = n;
        Line line = new Line();
        line.article = "bolt";
        line.pieces = 1L << 40;
        order.lines.add(line);
        return order;
    }

    static long count() {
        return morphium.createQueryFor(Order.class).countAll();
    }

    static void writesAndReads() {
        for (int i = 0; i < 50; i++) morphium.store(order("o" + i, i % 2 == 0 ? "new" : "done", i));
        List<Order> many = new ArrayList<>();
        for (int i = 50; i < 250; i++) many.add(order("o" + i, "new", i));
        morphium.storeList(many);
        Check.equal(250L, count());
        Order found = morphium.createQueryFor(Order.class).f("name").eq("o3").get();
        Check.equal(1L << 40, found.lines.get(0).pieces);
        List<Order> top = morphium.createQueryFor(Order.class).f("state").eq("new").f("n").lt(100).sort("-n").limit(3).asList();
        Check.equal("[99, 98, 97]", top.stream().map(o -> o.n).toList().toString());
        int all = 0;
        for (Order o : morphium.createQueryFor(Order.class).asIterable(20)) all += o.n >= 0 ? 1 : 0;
        Check.equal(250, all);
    }

    static void updatesAndDeletes() {
        Order first = order("first", "new", 1);
        morphium.store(first);
        morphium.inc(first, "n", 4);
        morphium.set(morphium.createQueryFor(Order.class).f("name").eq("first"), "state", "done");
        morphium.push(morphium.createQueryFor(Order.class).f("name").eq("first"), "lines", new Line());
        Order found = morphium.createQueryFor(Order.class).f("name").eq("first").get();
        Check.equal("5 done 2", found.n + " " + found.state + " " + found.lines.size());
        morphium.delete(found);
        Check.equal(0L, count());
    }

    static void indexesAndDuplicates() {
        morphium.ensureIndicesFor(Order.class);
        morphium.store(order("one", "new", 1));
        Check.fails("duplicate key", () -> morphium.insert(order("one", "new", 2)));
        Check.equal(1L, count());
    }

    static void aggregates() {
        for (int i = 0; i < 10; i++) morphium.store(order("o" + i, i % 2 == 0 ? "new" : "done", i));
        var groups = morphium.createAggregator(Order.class, java.util.Map.class)
            .match(morphium.createQueryFor(Order.class).f("n").gte(4)).sort("-n").limit(2).aggregateMap();
        Check.equal(2, groups.size());
        Check.equal(9, groups.get(0).get("n"));
    }

    static void watches() throws Exception {
        morphium.store(order("before", "new", 0));
        BlockingQueue<ChangeStreamEvent> events = new LinkedBlockingQueue<>();
        ChangeStreamMonitor monitor = new ChangeStreamMonitor(morphium, Order.class);
        monitor.addListener(event -> {
            events.add(event);
            return true;
        });
        monitor.start();
        ChangeStreamEvent event = null;
        for (int i = 0; event == null && i < 100; i++) {  // a monitor does not tell when its stream is open: write until it sees something
            morphium.store(order("probe" + i, "new", i));
            event = events.poll(200, TimeUnit.MILLISECONDS);
        }
        Check.equal("insert", event.getOperationType());
        Order last = order("last", "new", 1);
        morphium.store(last);
        morphium.set(last, "state", "done");
        morphium.delete(last);
        List<String> seen = new ArrayList<>();
        while (!seen.contains("delete")) {
            event = events.poll(WAIT_S, TimeUnit.SECONDS);
            Check.that(event != null, "no event within " + WAIT_S + " s, seen: " + seen);
            if (String.valueOf(event.getDocumentKey()).contains(last.id.toString())) seen.add(event.getOperationType());
        }
        monitor.terminate();
        Check.equal("[insert, update, delete]", seen.toString());
    }

    static void transactions() {
        morphium.store(order("there", "new", 1));
        morphium.startTransaction();
        morphium.store(order("never", "new", 1));
        morphium.abortTransaction();
        Check.equal(1L, count());
        morphium.startTransaction();
        morphium.store(order("one", "new", 1));
        morphium.store(order("two", "new", 2));
        Check.equal(3, morphium.createQueryFor(Order.class).f("n").gte(0).asList().size());
        morphium.commitTransaction();
        Check.equal(3L, count());
    }

    static void messages() throws Exception {
        Morphium other = connect();
        Messaging asks = new Messaging(morphium, 100, true);
        Messaging answers = new Messaging(other, 100, true);
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        MessageListener<Msg> listener = (messaging, message) -> {
            heard.add(message.getValue());
            Msg answer = message.createAnswerMsg();
            answer.setValue("answer to " + message.getValue());
            return answer;
        };
        answers.addListenerForMessageNamed("question", listener);
        asks.start();
        answers.start();
        try {
            for (int i = 0; i < 5; i++) {
                Msg answer = asks.sendAndAwaitFirstAnswer(new Msg("question", "ask", "q" + i, 30000, true), WAIT_S * 1000L);
                Check.equal("answer to q" + i, answer.getValue());
            }
            Check.equal("[q0, q1, q2, q3, q4]", heard.toString());
        } finally {
            asks.terminate();
            answers.terminate();
            other.close();
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Server server = new Server()) {
            server.start();
            hostAndPort = server.hostAndPort();
            morphium = connect();
            Check.run("a Morphium node writes and reads", MorphiumNode::clean, MorphiumNode::writesAndReads);
            Check.run("a Morphium node updates and deletes", MorphiumNode::clean, MorphiumNode::updatesAndDeletes);
            Check.run("a Morphium node makes indexes, duplicates are refused", MorphiumNode::clean, MorphiumNode::indexesAndDuplicates);
            Check.run("a Morphium node aggregates", MorphiumNode::clean, MorphiumNode::aggregates);
            Check.run("a Morphium node commits and aborts", MorphiumNode::clean, MorphiumNode::transactions);
            Check.run("a Morphium node watches", MorphiumNode::clean, MorphiumNode::watches);
            Check.run("two Morphium nodes send, lock, answer", MorphiumNode::clean, MorphiumNode::messages);
            morphium.close();
        }
        System.exit(Check.summary());
    }

    static void clean() {
        morphium.dropCollection(Order.class);
    }
}
