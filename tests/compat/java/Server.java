// Starts and stops `angelia serve`: a child process on a free loopback port, with a data folder of its own.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

final class Server implements AutoCloseable {
    private final Path data;
    private int port = 0;
    private Process process;

    Server() throws IOException {
        data = Files.createTempDirectory("angelia-compat-");
    }

    /** Returns the URI once the server accepts connections; a restart takes the port of the first start. */
    String start() throws IOException {
        process = new ProcessBuilder(System.getenv("ANGELIA_PROGRAM"), "serve", "--data", data.toString(), "--port", Integer.toString(port),
            "--enable-test-commands").redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        Matcher uri = Pattern.compile("mongodb://[^/]*:(\\d+)/\\S*").matcher(String.valueOf(line));
        if (!uri.find()) throw new IOException("angelia serve did not start: " + line);
        port = Integer.parseInt(uri.group(1));
        return uri.group();
    }

    String hostAndPort() {
        return "127.0.0.1:" + port;
    }

    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor(10, TimeUnit.SECONDS);
    }

    @Override
    public void close() throws Exception {
        kill();
        try (var files = Files.walk(data)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) Files.delete(file);
        }
    }
}
