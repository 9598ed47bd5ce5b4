"""The charts of the examples: for each system its history tables, one below the other."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt_history.conventions import ConventionError
from dbt_history.docs.manifest import Node, Project
from dbt_history.timeline.errors import TimelineError
from dbt_history.timeline.page import body
from dbt_history.timeline.settings import settings_of_node
from dbt_history.timeline.table import Track, read_recorded_key, read_track

COLUMNS_OF_LOGS = ("mod_time", "_hist_event")
AXES = {"timestamp": "time", "date": "time", "bigint": "number"}


@dataclass(frozen=True)
class Picture:
    """One page: a system's tables that share an axis, or its snapshots."""

    system: str
    axis: str
    tracks: tuple[Track, ...]

    @property
    def name(self) -> str:
        return f"{self.system}_by_{self.axis}"

    @property
    def title(self) -> str:
        ends = {"time": "versions", "number": "versions by number", "run": "snapshots, by run"}
        return f"{self.system}: {ends[self.axis]}"

    @property
    def html(self) -> str:
        return body(self.tracks)


def is_drawn(node: Node) -> bool:
    """Whether the node has a chart: version tables, snapshots, mirrors and event tables."""
    kind = node.get("config", {}).get("materialized")
    if kind == "history_append":
        return bool(node["columns"].keys() & set(COLUMNS_OF_LOGS))
    return kind in ("history", "history_batch", "snapshot")


def is_same(one: Track, other: Track) -> bool:
    """Whether two tables have the same versions, built in two ways."""

    def content(track: Track) -> list[object]:
        return [(each.key, each.since, each.until, each.values) for each in track.versions]

    return content(one) == content(other)


def pictures(project: Project, spark: SparkSession) -> tuple[list[Picture], list[str]]:
    """All charts, and the tables that cannot be drawn, with the reason."""
    drawn: dict[tuple[str, str], list[Track]] = {}
    problems: list[str] = []
    for node in sorted(project.nodes.values(), key=lambda one: len(one["name"])):
        system = project.system(node)
        if system is None or not is_drawn(node):
            continue
        try:
            known = settings_of_node(project.nodes, node)
            key = known.key or read_recorded_key(spark, known.name)
            track = read_track(spark, known.name, key, (), known.convention, known.hidden)
        except (TimelineError, ConventionError) as error:
            problems.append(f"{node['schema']}.{node['alias']}: {error}")
            continue
        # A snapshot has the times of its runs, which would compress the other periods.
        axis = AXES[track.convention.type]
        is_snapshot = node["resource_type"] == "snapshot"
        tracks = drawn.setdefault((system, "run" if is_snapshot else axis), [])
        if not any(is_same(track, other) for other in tracks):
            tracks.append(track)
    found = [Picture(system, axis, tuple(tracks)) for (system, axis), tracks in drawn.items()]
    return sorted(found, key=lambda one: one.name), problems
