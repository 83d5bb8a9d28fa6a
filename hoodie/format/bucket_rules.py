"""Files of bucket rules, `.hoodie/.bucket_index/partition_bucket_index_meta/configs/{instant}.hashing_config`: JSON objects.

Of several the last one counts whose instant is not a pending replacecommit: who gives partitions other numbers of buckets writes
their rows anew by such an instant. A table that was made with rules has one of instant 00000000000000. Witness: Apache Hudi 1.2
(integration/test_bucket_rules_with_hudi.py).
"""

from __future__ import annotations

import json

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.model.buckets import BUCKET_INDEX, RULE_TYPE, BucketRules
from hoodie.model.instant import InstantTime
from hoodie.model.names import join

RULES = join(BUCKET_INDEX, "partition_bucket_index_meta")
CONFIGS = join(RULES, "configs")
SUFFIX = ".hashing_config"
_VERSION = 1


def rules_path(instant: InstantTime) -> str:
    return join(CONFIGS, instant + SUFFIX)


def format_rules(rules: BucketRules, default_count: int) -> bytes:
    """The file; `default_count`: buckets of partitions that no rule names."""
    content = {
        "expressions": rules.expressions,
        "defaultBucketNumber": default_count,
        "rule": RULE_TYPE,
        "version": _VERSION,
        "instant": rules.instant,
    }
    return json.dumps(content, indent=2).encode()


def parse_rules(data: bytes, *, path: str) -> tuple[BucketRules, int]:
    """The rules, and the number of buckets of partitions that none names.

    Raises:
        CorruptFileError: the file is none of rules. UnsupportedTableError: they are of another kind, or cannot be evaluated here.
    """
    try:
        content = json.loads(data)
        rule, version = str(content["rule"]).lower(), content["version"]
        rules = BucketRules(str(content["expressions"]), InstantTime(str(content["instant"])))
        default_count = int(content["defaultBucketNumber"])
    except (ValueError, TypeError, KeyError) as exc:
        raise CorruptFileError(f"{path} has no rules of buckets: {exc!r}") from exc
    if rule != RULE_TYPE or version != _VERSION or default_count < 1:
        raise UnsupportedTableError(
            f"{path}: rules of kind {rule!r}, version {version}, which this release does not know"
        )
    try:
        _ = rules.parsed
    except ValueError as exc:
        raise UnsupportedTableError(f"{path}: {exc}") from exc
    return rules, default_count
