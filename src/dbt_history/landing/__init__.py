"""Lands the files of a `WriteHistoryBatchRequest` as staged rows in a Delta landing table."""

from dbt_history.landing.errors import BusyError, LandingError, Problem, RefusedError
from dbt_history.landing.files import Limits
from dbt_history.landing.land import Landed, land
from dbt_history.landing.request import Request, parse_request, read_request
from dbt_history.landing.table import LandingTable

__all__ = [
    "BusyError",
    "Landed",
    "LandingError",
    "LandingTable",
    "Limits",
    "Problem",
    "RefusedError",
    "Request",
    "land",
    "parse_request",
    "read_request",
]
