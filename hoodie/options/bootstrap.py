"""Bootstraps: files outside of a table become its rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hoodie.options.option import combined, key, option
from hoodie.options.values import (
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    KeyGeneratorType,
    choice,
    one_of,
    regex,
    text,
)

_SELECTORS = "org.apache.hudi.client.bootstrap.selector."
_TRANSLATORS = "org.apache.hudi.client.bootstrap.translator."


class BootstrapMode(StrEnum):
    """What becomes of a partition of the source."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"


_KEYGEN_CLASS = key("hoodie.bootstrap.keygen.class", KEY_GENERATOR_CLASS, None)
"""Key generator of a table that is bootstrapped; it wins over that of the write."""
_KEYGEN_TYPE = key("hoodie.bootstrap.keygen.type", KEY_GENERATOR_TYPE, None)
"""The same by its type."""


def _either(by_class: KeyGeneratorType | None, by_type: KeyGeneratorType | None) -> KeyGeneratorType | None:
    return by_class or by_type


@dataclass(frozen=True)
class BootstrapOptions:
    """Of `hoodie.datasource.write.operation=bootstrap`."""

    base_path: str | None = option("hoodie.bootstrap.base.path", text("a folder"), None)
    """Operation bootstrap (Spark): the folder of Parquet files that becomes a table. Other operations take no notice of it."""
    selector: BootstrapMode | None = option(
        "hoodie.bootstrap.mode.selector",
        choice(
            {
                f"{_SELECTORS}MetadataOnlyBootstrapModeSelector": BootstrapMode.METADATA_ONLY,
                f"{_SELECTORS}FullRecordBootstrapModeSelector": BootstrapMode.FULL_RECORD,
                f"{_SELECTORS}BootstrapRegexModeSelector": None,
            }
        ),
        f"{_SELECTORS}MetadataOnlyBootstrapModeSelector",
    )
    """Whether files stay where they are, with files of `_hoodie_` columns beside them in the table, or are copied; or the pattern
    decides for each folder."""
    pattern: str = option("hoodie.bootstrap.mode.selector.regex", regex(), ".*")
    """BootstrapRegexModeSelector: folders of the source whose whole name, from its base on, matches are taken over by the mode of
    `hoodie.bootstrap.mode.selector.regex.mode`, the others by the other one."""
    pattern_mode: BootstrapMode = option(
        "hoodie.bootstrap.mode.selector.regex.mode", one_of(BootstrapMode), "METADATA_ONLY"
    )
    """The mode of folders that match."""
    keygen: KeyGeneratorType | None = combined(_either, _KEYGEN_CLASS, _KEYGEN_TYPE)
    provider: str = option(
        "hoodie.bootstrap.full.input.provider",
        choice(
            {"org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider": "parquet"},
            unsupported=("org.apache.hudi.bootstrap.SparkOrcBootstrapDataProvider",),
        ),
        "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
    )
    """What reads the files that are copied."""
    translator: str = option(
        "hoodie.bootstrap.partitionpath.translator.class",
        choice(
            {f"{_TRANSLATORS}IdentityBootstrapPartitionPathTranslator": "identity"},
            unsupported=(f"{_TRANSLATORS}DecodedBootstrapPartitionPathTranslator",),
        ),
        f"{_TRANSLATORS}IdentityBootstrapPartitionPathTranslator",
    )
    """How folders of the table are called: as those of the source."""

    def mode_of(self, folder: str) -> BootstrapMode:
        """Of the files of a folder of the source."""
        if self.selector is not None:
            return self.selector
        if re.fullmatch(self.pattern, folder):
            return self.pattern_mode
        return next(mode for mode in BootstrapMode if mode is not self.pattern_mode)
