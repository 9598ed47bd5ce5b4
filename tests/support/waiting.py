"""How long tests wait for what may never happen."""

from __future__ import annotations

# Seconds after which a step fails its test; on a slow machine steps take a tenth of it.
TIMEOUT = 1200
