"""Airflow: a DAG that takes what is new in a folder into a table, and then runs its services. hoodie needs no provider for it.

pip install apache-airflow hoodie
cp airflow_dag.py $AIRFLOW_HOME/dags/
"""

import os
from datetime import datetime, timedelta

from airflow.sdk import dag, task

LANDING = os.environ.get("LANDING", "landing")
TRIPS = os.environ.get("LAKE", "lake") + "/trips"


@dag(schedule=timedelta(minutes=10), start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def trips_into_the_lake() -> None:
    """A task that is tried again goes on behind the last commit, so each file is taken once."""

    @task(retries=3)
    def load() -> int:
        import hoodie  # in the worker: the scheduler only reads this file

        return hoodie.ingest(LANDING, TRIPS, record_key="id", options={"hoodie.table.services.enabled": "false"}).rows

    @task(retries=3)
    def keep_in_shape(rows: int) -> None:
        import hoodie

        table = hoodie.open_table(TRIPS)
        table.clean()
        table.archive()

    keep_in_shape(load())


trips_into_the_lake()
