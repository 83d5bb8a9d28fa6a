"""Lines of Prometheus' text format."""

from __future__ import annotations

from collections.abc import Mapping


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """A metric with its labels and a value, as one line."""
    label_text = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{f'{{{label_text}}}' if label_text else ''} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
