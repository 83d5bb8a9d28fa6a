"""What makes `dbt run` work with `file_format: hudi`: dbt imports each module whose name begins with `dbt_` when it starts.

Sessions that dbt-spark makes (`method: session`) then know the format. No other adapter of dbt loads PySpark by this.
"""

import importlib.util
import sys

if "dbt.adapters.spark" in sys.modules and importlib.util.find_spec("pyspark") is not None:
    importlib.import_module("dbt_hoodie.sessions").enable_new_ones()
