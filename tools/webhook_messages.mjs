// webhook_messages.mjs PACKAGE_FOLDER: prints one message a line for each payload of @octokit/webhooks-examples:
// topic github.<group name>, value = the payload's action (null where it has none), map_value = the payload.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const groups = JSON.parse(readFileSync(join(process.argv[2], "api.github.com", "index.json"), "utf8"));
for (const group of groups) {
    for (const payload of group.examples) {
        const message = { topic: `github.${group.name}`, value: payload.action ?? null, map_value: payload };
        process.stdout.write(JSON.stringify(message) + "\n");
    }
}
