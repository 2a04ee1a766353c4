// Runs cases one after the other, says which passed, counts the ones that failed.

import java.util.Objects;

final class Check {
    interface Body {
        void run() throws Exception;
    }

    private static int passed, failed;

    static void run(String name, Body prepare, Body body) {
        long start = System.currentTimeMillis();
        try {
            prepare.run();
            body.run();
            passed++;
            System.out.println("ok      " + name + " (" + (System.currentTimeMillis() - start) + " ms)");
        } catch (Throwable e) {
            failed++;
            System.out.println("FAILED  " + name);
            e.printStackTrace(System.out);
        }
    }

    static void that(boolean condition, String otherwise) {
        if (!condition) throw new AssertionError(otherwise);
    }

    static void equal(Object expected, Object actual) {
        that(Objects.equals(expected, actual), "expected " + expected + ", got " + actual);
    }

    /** The body must throw; the message or that of a cause holds the text. */
    static Throwable fails(String text, Body body) {
        try {
            body.run();
        } catch (Throwable e) {
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                if (String.valueOf(cause.getMessage()).contains(text)) return e;
            }
            throw new AssertionError("wrong error, expected one about " + text, e);
        }
        throw new AssertionError("nothing was thrown, expected an error about " + text);
    }

    /** Says how many passed and failed; 0 when none failed. */
    static int summary() {
        System.out.println(passed + " passed, " + failed + " failed");
        return failed == 0 && passed > 0 ? 0 : 1;
    }
}
