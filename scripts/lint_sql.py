"""Run sqlfluff on the SQL that changed: `lint_sql.py lint`, or `fix`.

A file without problems is linted again only when it, the rules or sqlfluff changed.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Without `snapshots`: sqlfluff's templater does not know the tag.
FOLDERS = ("models", "tests/data", "tests/render/golden", "integration_tests/models")
# One line for each file without problems: what the result depends on.
CLEAN = ROOT / ".state" / "lint_sql.txt"


def contents() -> dict[str, str]:
    """A hash of each SQL file, its name and the rules."""
    rules = [ROOT / ".sqlfluff", ROOT / "requirements/dev.lock"]
    rules += sorted((ROOT / "scripts/sqlfluff_library").glob("*.py"))
    common = b"".join(rule.read_bytes() for rule in rules)
    found = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.sql")):
            name = str(file.relative_to(ROOT))
            content = common + name.encode() + b"\0" + file.read_bytes()
            found[name] = hashlib.sha256(content).hexdigest()
    return found


def main(action: str) -> int:
    clean = set(CLEAN.read_text().split()) if CLEAN.is_file() else set()
    files = [name for name, content in contents().items() if content not in clean]
    if not files:
        return 0
    command = ["sqlfluff", action, "--disable-progress-bar", "--processes", "2", *files]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status == 0:
        CLEAN.write_text("\n".join(contents().values()))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
