"""Dagster: an asset that takes what is new in a folder into a table, and a check of it. hoodie needs no plugin for it.

pip install dagster hoodie
LANDING=landing LAKE=lake dagster dev -f dagster_assets.py
"""

import os

from dagster import (
    AssetCheckResult,
    AssetSelection,
    Definitions,
    MaterializeResult,
    ScheduleDefinition,
    asset,
    asset_check,
    define_asset_job,
)

import hoodie

LANDING = os.environ.get("LANDING", "landing")
TRIPS = os.environ.get("LAKE", "lake") + "/trips"


@asset
def trips() -> MaterializeResult:
    """Each file once, whatever dies: a run that is repeated goes on behind the last commit."""
    done = hoodie.ingest(LANDING, TRIPS, record_key="id")
    instant = done.rounds[-1].instant if done.rounds else "nothing new"
    return MaterializeResult(metadata={"rows": done.rows, "bad": done.bad, "instant": instant or "of another run"})


@asset_check(asset=trips)
def is_healthy() -> AssetCheckResult:
    """The doctor finds no damage."""
    found = hoodie.open_table(TRIPS).doctor()
    return AssetCheckResult(passed=found.is_healthy, metadata={"found": str(found)})


job = define_asset_job("load_trips", AssetSelection.assets(trips))
definitions = Definitions(
    assets=[trips],
    asset_checks=[is_healthy],
    jobs=[job],
    schedules=[ScheduleDefinition(job=job, cron_schedule="*/10 * * * *")],
)
