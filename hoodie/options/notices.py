"""Who is told of each commit: an HTTP address that is called, and a gateway of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hoodie.errors import OptionError
from hoodie.options.option import Key, combined, key, option, option_name, shared
from hoodie.options.values import boolean, text, whole

_CALLBACK, _METRICS, _GATEWAY = "hoodie.write.commit.callback.", "hoodie.metrics.", "hoodie.metrics.pushgateway."
_HTTP = "HoodieWriteCommitHttpCallback"
_PUSHGATEWAY = "PROMETHEUS_PUSHGATEWAY"

CALLBACK_ON = key(f"{_CALLBACK}on", boolean(), False)
"""Call an address back after each commit. A failure is a warning, and the commit stands."""
CALLBACK_CLASS = key(f"{_CALLBACK}class", text("a class"), f"org.apache.hudi.callback.impl.{_HTTP}")
"""How: by HTTP. Any other class is a warning at each write: nobody is called."""
METRICS_ON = key(f"{_METRICS}on", boolean(), False)
"""Report what each commit wrote. A failure is a warning, and the commit stands."""
REPORTER = key(f"{_METRICS}reporter.type", text("a reporter"), "GRAPHITE")
"""Where to: PROMETHEUS_PUSHGATEWAY. Any other reporter is a warning at each write: nothing is reported."""


def not_told(get: Callable[[Key[Any]], Any]) -> list[str]:
    """Whom the options ask to tell and who is not, a sentence each."""
    sentences = []
    if get(CALLBACK_ON) and not _is_http(get(CALLBACK_CLASS)):
        sentences.append(f"nobody is called back by {get(CALLBACK_CLASS)} after a commit ({CALLBACK_CLASS.name})")
    if get(METRICS_ON) and get(REPORTER).upper() != _PUSHGATEWAY:
        sentences.append(f"no metrics are reported to {get(REPORTER)} ({REPORTER.name})")
    return sentences


def _is_http(name: str) -> bool:
    return name.rpartition(".")[2] == _HTTP


def _headers(given: str | None) -> Mapping[str, str]:
    """`name:value` with semicolons between; Apache Hudi leaves out what has another form, and we refuse it."""
    pairs = [each.partition(":") for each in (given or "").split(";") if each.strip()]
    if not all(name.strip() and colon and value.strip() for name, colon, value in pairs):
        raise OptionError(f"{_CALLBACK}http.custom.headers is not name:value with semicolons between")
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True)
class CallbackOptions:
    enabled: bool = combined(lambda on, name: on and _is_http(name), CALLBACK_ON, CALLBACK_CLASS)
    url: str | None = shared(
        key(
            f"{_CALLBACK}http.url",
            text("an address"),
            None,
            "Address that gets a POST with what was committed, as JSON by the names of Apache Hudi.",
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

    def check(self) -> None:
        """Raises OptionError: it is to be called, and has no address."""
        if self.enabled and self.url is None:
            raise OptionError(f"{CALLBACK_ON.name}=true needs {option_name(CallbackOptions, 'url')}")


def _labels(given: str | None) -> Mapping[str, str]:
    pairs = [each.partition(":") for each in (given or "").split(",") if each.strip()]
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
