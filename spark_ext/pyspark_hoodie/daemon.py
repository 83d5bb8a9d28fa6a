"""Spark's daemon of Python workers, with all imports of hoodie's tasks in memory: `spark.python.daemon.module`.

Spark ends Python workers that had nothing to do for a minute, so a job that writes every other minute starts new ones each time,
and each imports pyarrow and this package for half a second before it does anything. Workers are forked from the
daemon, which stays: what it has imported costs them nothing. Tasks of others are not disturbed; their workers share the memory.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.daemon import manager

from hoodie.engine.late_pandas import put_pandas_off
from pyspark_hoodie.engine import spare_next_task

for _name in (
    "hoodie.filegroup.run",
    "hoodie.index.bloom",
    "hoodie.index.bucket",
    "hoodie.write.load_part",
):
    import_module(_name)

if __name__ == "__main__":
    put_pandas_off()
    spare_next_task()
    manager()
