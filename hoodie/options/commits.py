"""Validators, which check a commit by SQL queries; and receivers of commits: an HTTP address, a Kafka topic, a Prometheus gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hoodie.errors import OptionError
from hoodie.options.option import Key, combined, key, option, option_name, shared
from hoodie.options.values import Kind, boolean, fields, one_of, optional, text, whole

_PREFIX = "hoodie.precommit.validators"
_NAMES = {
    "equality": "SqlQueryEqualityPreCommitValidator",
    "inequality": "SqlQueryInequalityPreCommitValidator",
    "single.value": "SqlQuerySingleResultPreCommitValidator",
}
TABLE = "<TABLE_NAME>"
"""Stands for the rows in a query."""


class Query(NamedTuple):
    """One check."""

    kind: str
    """equality, inequality or single.value."""
    text: str
    expected: str | None = None
    """Of single.value: the one value that the query has to give."""


def _classes() -> Kind[tuple[str, ...]]:
    kinds = {name: kind for kind, name in _NAMES.items()}

    def read(value: str) -> tuple[str, ...]:
        kinds_of_names = [kinds.get(name.rpartition(".")[2]) for name in fields().read(value)]
        if None in kinds_of_names:
            raise ValueError(
                "is not supported by this release: validators written in Java are not run, so a commit that they would stop would "
                f"land; it has {', '.join(_NAMES.values())}"
            )
        return tuple(kind for kind in kinds_of_names if kind is not None)

    return Kind(f"a comma list of {', '.join(_NAMES.values())}", read)


def _queries(kind: str) -> Kind[tuple[Query, ...]]:
    form = "queries over <TABLE_NAME> with semicolons between" + (
        ", each as query#value" if kind == "single.value" else ""
    )

    def read(value: str) -> tuple[Query, ...]:
        result = []
        for each in (part.strip() for part in value.split(";")):
            query, hash_, expected = each.rpartition("#") if kind == "single.value" else (each, "#", "")
            if each and (not hash_ or TABLE not in query):
                raise ValueError(f"is not {form}")
            if each:
                result.append(Query(kind, query.strip(), expected.strip() if kind == "single.value" else None))
        return tuple(result)

    return Kind(form, read)


def _chosen(kinds: Sequence[str] | None, *queries: tuple[Query, ...] | None) -> tuple[Query, ...]:
    by_kind = dict(zip(_NAMES, queries, strict=True))
    lacking = [kind for kind in kinds or () if not by_kind[kind]]
    if lacking:
        raise OptionError(f"{_PREFIX} has {_NAMES[lacking[0]]}, which needs {_PREFIX}.{lacking[0]}.sql.queries")
    return tuple(query for kind in kinds or () for query in by_kind[kind] or ())


_VALIDATORS = key(_PREFIX, _classes(), None)
"""Checks of a commit, by Apache Hudi's classes. If a check fails, the write fails without a commit. Checks see the base
files of the partitions that the write changes, as Apache Hudi's do, and need the extra `sql`."""
_EQUALITY = key(
    f"{_PREFIX}.equality.sql.queries",
    _queries("equality"),
    None,
    "Queries that must give the same result before and after the commit.",
)
_INEQUALITY = key(
    f"{_PREFIX}.inequality.sql.queries",
    _queries("inequality"),
    None,
    "Queries that must give another result after the commit.",
)
_SINGLE = key(
    f"{_PREFIX}.single.value.sql.queries",
    _queries("single.value"),
    None,
    "Queries that must give a certain value after the commit.",
)


@dataclass(frozen=True)
class ValidatorOptions:
    queries: tuple[Query, ...] = combined(_chosen, _VALIDATORS, _EQUALITY, _INEQUALITY, _SINGLE)
    """What is checked before each commit of a write."""
    policy: str = option(f"{_PREFIX}.failure.policy", one_of(("FAIL", "WARN_LOG")), "FAIL")
    """If a check fails: fail the write, or log a warning."""


_CALLBACK, _METRICS, _GATEWAY = "hoodie.write.commit.callback.", "hoodie.metrics.", "hoodie.metrics.pushgateway."
_HTTP, _KAFKA = "HoodieWriteCommitHttpCallback", "HoodieWriteCommitKafkaCallback"
_SERVERS, _TOPIC = f"{_CALLBACK}kafka.bootstrap.servers", f"{_CALLBACK}kafka.topic"
_PUSHGATEWAY = "PROMETHEUS_PUSHGATEWAY"

CALLBACK_ON = key(f"{_CALLBACK}on", boolean(), False)
"""After each commit, send its data to an HTTP address or a Kafka topic. A failure is a warning, and the commit
stands."""
CALLBACK_CLASS = key(f"{_CALLBACK}class", text("a class"), f"org.apache.hudi.callback.impl.{_HTTP}")
"""How: by HTTP, or `HoodieWriteCommitKafkaCallback`. Any other class is a warning at each write: nobody is called."""
METRICS_ON = key(f"{_METRICS}on", boolean(), False)
"""Report what each commit wrote. A failure is a warning, and the commit stands."""
REPORTER = key(f"{_METRICS}reporter.type", text("a reporter"), "GRAPHITE")
"""Where to: PROMETHEUS_PUSHGATEWAY. Any other reporter is a warning at each write: nothing is reported."""


def not_told(get: Callable[[Key[Any]], Any]) -> list[str]:
    """Whom the options ask to tell and who is not, a sentence each."""
    sentences = []
    if get(CALLBACK_ON) and _class(get(CALLBACK_CLASS)) not in (_HTTP, _KAFKA):
        sentences.append(
            f"nobody is called back by {get(CALLBACK_CLASS)} after a commit ({CALLBACK_ON.name}, {CALLBACK_CLASS.name})"
        )
    if get(METRICS_ON) and get(REPORTER).upper() != _PUSHGATEWAY:
        sentences.append(f"no metrics are reported to {get(REPORTER)} ({METRICS_ON.name}, {REPORTER.name})")
    return sentences


def _class(name: str) -> str:
    return name.rpartition(".")[2]


def _headers(header_text: str | None) -> Mapping[str, str]:
    """`name:value` with semicolons between; Apache Hudi leaves out what has another form, and we refuse it."""
    pairs = [each.partition(":") for each in (header_text or "").split(";") if each.strip()]
    if not all(name.strip() and colon and value.strip() for name, colon, value in pairs):
        raise OptionError(f"{_CALLBACK}http.custom.headers is not name:value with semicolons between")
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True)
class CallbackOptions:
    enabled: bool = combined(lambda on, name: on and _class(name) in (_HTTP, _KAFKA), CALLBACK_ON, CALLBACK_CLASS)
    by_kafka: bool = combined(lambda name: _class(name) == _KAFKA, CALLBACK_CLASS)
    url: str | None = shared(
        key(
            f"{_CALLBACK}http.url",
            text("an address"),
            None,
            "Address that gets a POST with the data of the commit, as JSON with Apache Hudi's names.",
        ),
        repr=False,
    )
    api_key: str = shared(
        key(
            f"{_CALLBACK}http.api.key",
            text("a text"),
            "hudi_write_commit_http_callback",
            "Value of its header `HUDI-CALLBACK-KEY`.",
        ),
        repr=False,
    )
    headers: Mapping[str, str] = combined(
        _headers,
        key(
            f"{_CALLBACK}http.custom.headers",
            text("name:value;…"),
            None,
            "More headers, as `name:value` with semicolons between.",
        ),
        repr=False,
    )
    timeout_s: int = option(f"{_CALLBACK}http.timeout.seconds", whole(1), 30)
    """Seconds to wait for its answer."""

    kafka_servers: str | None = option(_SERVERS, text("host:port,…"), None)
    """Brokers of the topic that gets the data of the commit; a record has the JSON, and the table's name as its key."""
    kafka_topic: str | None = option(_TOPIC, text("a topic"), None)
    """That topic."""
    kafka_partition: int | None = option(f"{_CALLBACK}kafka.partition", optional(whole(0)), None)
    """Its partition. Unset: by the key."""
    kafka_acks: str = option(f"{_CALLBACK}kafka.acks", one_of(("all", "-1", "0", "1")), "all")
    """How many brokers have to have the record."""
    kafka_retries: int = option(f"{_CALLBACK}kafka.retries", whole(0), 3)
    """How often it is sent again."""

    def check(self) -> None:
        """Raises OptionError: it is to be called, and has no address; or no topic is to be told."""
        needed = {_SERVERS: self.kafka_servers, _TOPIC: self.kafka_topic} if self.by_kafka else {}
        missing = [name for name, value in needed.items() if value is None]
        if not self.by_kafka and self.url is None:
            missing = [option_name(CallbackOptions, "url")]
        if self.enabled and missing:
            raise OptionError(f"{CALLBACK_ON.name}=true needs {' and '.join(missing)}")


def _labels(label_text: str | None) -> Mapping[str, str]:
    pairs = [each.partition(":") for each in (label_text or "").split(",") if each.strip()]
    if not all(name.strip() and colon for name, colon, _ in pairs):
        raise OptionError(f"{_GATEWAY}report.labels is not name:value with commas between")
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True)
class MetricsOptions:
    enabled: bool = combined(lambda on, reporter: on and reporter.upper() == _PUSHGATEWAY, METRICS_ON, REPORTER)
    host: str = option(f"{_GATEWAY}host", text("a host"), "localhost")
    """Host of Prometheus' push gateway."""
    port: int = option(f"{_GATEWAY}port", whole(1), 9091)
    """Its port."""
    job: str | None = option(f"{_GATEWAY}job.name", text("a name"), None)
    """Job under which the metrics stand there. Unset: the table's name."""
    random_suffix: bool = option(f"{_GATEWAY}random.job.name.suffix", boolean(), True)
    """Put a random number behind the job's name, one for each process, so that processes do not overwrite each other's metrics."""
    labels: Mapping[str, str] = combined(
        _labels,
        key(
            f"{_GATEWAY}report.labels",
            text("name:value,…"),
            None,
            "Labels of all metrics there, as `name:value` with commas between.",
        ),
    )
    prefix: str | None = option(f"{_METRICS}reporter.metricsname.prefix", text("a prefix"), None)
    """What names of metrics begin with. Unset: the table's name."""
