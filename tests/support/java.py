"""Options of the Java of the tests' Spark."""

from __future__ import annotations

from tests.support.selection import IS_ALL

COMMON = (
    "-XX:+UseSerialGC -Duser.timezone=UTC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# The optimizing compiler pays off in a process of an hour, but not in one of ten minutes
# (docs/decisions/0089).
QUICK = "-Xmn400m -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m"
OPTIONS = COMMON if IS_ALL else f"{COMMON} {QUICK}"
