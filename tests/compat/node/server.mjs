// Starts and stops `angelia serve` for tests: a child process on a free loopback port, with a data folder of its own.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";

export class Server {
    data = mkdtempSync(join(tmpdir(), "angelia-compat-"));
    port = 0;

    /** Resolves to the URI once the server accepts connections; a restart takes the port of the first start. */
    async start() {
        this.process = spawn(process.env.ANGELIA_PROGRAM,
            ["serve", "--data", this.data, "--port", String(this.port), "--enable-test-commands"],
            { stdio: ["ignore", "pipe", "inherit"] });
        let text = "";
        for await (const chunk of this.process.stdout) {
            text += chunk;
            if (text.includes("\n")) break;
        }
        const uri = text.match(/mongodb:\/\/\S+/);
        if (!uri) throw new Error(`angelia serve did not start: ${text}`);
        this.port = Number(uri[0].match(/:(\d+)\//)[1]);
        return uri[0];
    }

    async kill(signal = "SIGKILL") {
        if (this.process.exitCode !== null || this.process.signalCode !== null) return this.process.exitCode;
        const ended = once(this.process, "exit");
        this.process.kill(signal);
        const [code] = await ended;
        return code;
    }

    async remove() {
        await this.kill();
        rmSync(this.data, { recursive: true, force: true });
    }
}
