#!/usr/bin/env bash
# run.sh [DriverSync] [MorphiumNode]
# Runs the Java driver and a Morphium node against `angelia serve` (ANGELIA_PROGRAM). Jars and classes stay below .cache/ of the tree.
# The JDK is ANGELIA_JAVA_HOME, or the one whose javac is found first.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../../.cache/java
javac=javac java=java
if [ -n "${ANGELIA_JAVA_HOME:-}" ]; then javac=$ANGELIA_JAVA_HOME/bin/javac java=$ANGELIA_JAVA_HOME/bin/java; fi

mkdir -p "$cache/classes"
if ! cmp -s "$here/pom.xml" "$cache/pom.xml"; then
    rm -rf "$cache/jars"
    mvn -B -q -f "$here/pom.xml" -Dmaven.repo.local="$cache/repository" \
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory="$cache/jars"
    cp "$here/pom.xml" "$cache/pom.xml"
fi
"$javac" -nowarn -d "$cache/classes" -cp "$cache/jars/*" "$here"/*.java
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(DriverSync MorphiumNode)
failed=0
for program in "${programs[@]}"; do
    echo "== $program"
    # Morphium makes proxies of entities, which needs java.lang open to it.
    timeout 300 "$java" -Xmx256m -XX:+UseSerialGC --add-opens java.base/java.lang=ALL-UNNAMED \
        -Dlogback.configurationFile="$here/logback.xml" -cp "$cache/classes:$cache/jars/*" "$program" || failed=1
done
exit $failed
