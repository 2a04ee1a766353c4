#!/usr/bin/env bash
# demo_input.sh OUT: writes real messages for `angelia demo --input`, one `publish --messages` object a line.
# With npm: the payloads of @octokit/webhooks-examples (GitHub's own examples). Without, or when npm fails: this clone's commit history.
# Exit code 1 when there is neither.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$1
package=@octokit/webhooks-examples
package_version=7.6.1

webhooks() {
    command -v npm >/dev/null && command -v node >/dev/null || return 1
    local folder=.cache/webhooks
    if [ ! -d "$folder/node_modules/$package" ]; then
        mkdir -p "$folder"
        echo '{"private": true}' >"$folder/package.json"
        echo "fetching $package $package_version for the demo" >&2
        (cd "$folder" && timeout 60 npm install --silent --no-audit --no-fund "$package@$package_version") >&2 || return 1
    fi
    node tools/webhook_messages.mjs "$folder/node_modules/$package" >"$out.part" && mv "$out.part" "$out"
}

history() {
    command -v git >/dev/null && git rev-parse --git-dir >/dev/null 2>&1 || return 1
    git log -n 2000 --format='%H%x1f%an%x1f%aI%x1f%s' | awk -F '\037' '
        function json(text) {
            gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); gsub(/[\001-\037]/, " ", text)
            return "\"" text "\""
        }
        { printf "{\"topic\": \"git.commit\", \"value\": %s, \"map_value\": {\"author\": %s, \"at\": {\"$date\": %s}, \"subject\": %s}}\n",
                 json($1), json($2), json($3), json($4) }' >"$out.part"
    [ -s "$out.part" ] && mv "$out.part" "$out"
}

webhooks || history
