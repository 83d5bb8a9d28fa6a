"""What every method of Apache Hudi's file system view answers, local or remote; runs inside the peer's process."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError

LATER = "9" * 17


class ViewPeer:
    """Views and timeline servers of the JVM of one Spark session."""

    def __init__(self, spark: Any) -> None:
        self._java = spark._jvm
        hadoop = self._java.org.apache.hudi.hadoop.fs.HadoopFSUtils
        self._conf = hadoop.getStorageConf(spark._jsc.hadoopConfiguration())
        self._services: dict[int, Any] = {}

    def answers(self, *, path: str, host: str | None = None, port: int = 0, partitions: list[str]) -> dict[str, object]:
        """The answers by method and arguments: of Hudi's own view, which lists, or of the server at that address."""
        view, times = self._view(path, host, port)
        try:
            return {"answers": _Answers(view, times, partitions, self._java).all()}
        finally:
            view.close()

    def start(self, *, path: str) -> dict[str, object]:
        """Start Hudi's timeline service; gives its port."""
        java = self._java.org.apache.hudi
        config = java.timeline.service.TimelineService.Config.builder().serverPort(0).enableMarkerRequests(True).build()
        engine = java.common.engine.HoodieLocalEngineContext(self._conf)
        manager = java.common.table.view.FileSystemViewManager.createViewManager(
            engine,
            java.common.config.HoodieMetadataConfig.newBuilder().enable(False).build(),
            java.common.table.view.FileSystemViewStorageConfig.newBuilder().build(),
            java.common.config.HoodieCommonConfig.newBuilder().build(),
        )
        service = java.timeline.service.TimelineService(self._conf, config, manager)
        port = int(service.startService())
        self._services[port] = service
        return {"port": port}

    def stop(self, *, port: int) -> dict[str, object]:
        """Stop one that was started."""
        self._services.pop(port).close()
        return {}

    def _view(self, path: str, host: str | None, port: int) -> tuple[Any, list[str]]:
        java = self._java.org.apache.hudi.common
        meta = java.table.HoodieTableMetaClient.builder().setConf(self._conf).setBasePath(path).build()
        timeline = meta.getActiveTimeline().filterCompletedAndCompactionInstants()
        times = [each.requestedTime() for each in timeline.getInstants()]
        if host is not None:
            return java.table.view.RemoteHoodieTableFileSystemView(host, port, meta), times
        engine = java.engine.HoodieLocalEngineContext(self._conf)
        make = java.table.view.HoodieTableFileSystemView.fileListingBasedFileSystemView
        return make(engine, meta, timeline), times


class _Answers:
    """Of one view."""

    def __init__(self, view: Any, times: list[str], partitions: list[str], java: Any) -> None:
        self._view = view
        self._times = times
        self._partitions = partitions
        self._java = java

    def all(self) -> dict[str, object]:
        view = self._view
        view.loadAllPartitions()
        found: dict[str, object] = {
            "getLatestBaseFiles": bases(view.getLatestBaseFiles()),
            "getLastInstant": str(view.getLastInstant().orElse(None)),
            "getTimeline": [str(each) for each in view.getTimeline().getInstants()],
            "getPendingCompactionOperations": sorted(map(operation, listed(view.getPendingCompactionOperations()))),
            "getPendingLogCompactionOperations": sorted(
                map(operation, listed(view.getPendingLogCompactionOperations()))
            ),
            "getFileGroupsInPendingClustering": sorted(
                clustering(each) for each in listed(view.getFileGroupsInPendingClustering())
            ),
        }
        for count in (1, len(self._times)):
            some = self._list(self._times[:count])
            found[f"getLatestBaseFilesInRange {count}"] = bases(view.getLatestBaseFilesInRange(some))
            try:
                found[f"getLatestFileSliceInRange {count}"] = slices(view.getLatestFileSliceInRange(some))
            except Py4JJavaError as error:
                # Hudi's own view throws where a file group has no slice of these instants.
                if "NoSuchElementException" not in str(error):
                    raise
                found[f"getLatestFileSliceInRange {count}"] = None
        for time in (*self._times, LATER):
            files = view.getAllLatestBaseFilesBeforeOrOn(time)
            found[f"getAllLatestBaseFilesBeforeOrOn {time}"] = {key: bases(files[key]) for key in files}
            files = view.getAllLatestFileSlicesBeforeOrOn(time)
            found[f"getAllLatestFileSlicesBeforeOrOn {time}"] = {key: slices(files[key]) for key in files}
        for path in self._partitions:
            found |= {f"{name} of {path}": answer for name, answer in self._of(path).items()}
        return found

    def _of(self, path: str) -> dict[str, object]:
        view = self._view
        found: dict[str, object] = {
            "getLatestBaseFiles": bases(view.getLatestBaseFiles(path)),
            "getAllBaseFiles": bases(view.getAllBaseFiles(path)),
            "getLatestFileSlices": slices(view.getLatestFileSlices(path)),
            "getLatestFileSlicesIncludingInflight": slices(view.getLatestFileSlicesIncludingInflight(path)),
            "getLatestFileSlicesStateless": slices(view.getLatestFileSlicesStateless(path)),
            "getLatestUnCompactedFileSlices": slices(view.getLatestUnCompactedFileSlices(path)),
            "getAllFileSlices": slices(view.getAllFileSlices(path)),
            "getAllFileGroups": groups(view.getAllFileGroups(path)),
            "getAllFileGroupsStateless": groups(view.getAllFileGroupsStateless(path)),
            "getAllReplacedFileGroups": groups(view.getAllReplacedFileGroups(path)),
        }
        ids = sorted({each.getFileId() for each in listed(view.getAllFileSlices(path))})[:4]
        for file_id in (*ids, "nobody"):
            found[f"getLatestBaseFile {file_id}"] = optional(base, view.getLatestBaseFile(path, file_id))
            found[f"getLatestFileSlice {file_id}"] = optional(file_slice, view.getLatestFileSlice(path, file_id))
        for time in (*self._times, LATER):
            found |= {
                f"getLatestBaseFilesBeforeOrOn {time}": bases(view.getLatestBaseFilesBeforeOrOn(path, time)),
                f"getLatestFileSlicesBeforeOrOn {time}": slices(view.getLatestFileSlicesBeforeOrOn(path, time, True)),
                f"getLatestFileSlicesBeforeOrOn {time} without compactions": slices(
                    view.getLatestFileSlicesBeforeOrOn(path, time, False)
                ),
                f"getLatestMergedFileSlicesBeforeOrOn {time}": slices(
                    view.getLatestMergedFileSlicesBeforeOrOn(path, time)
                ),
                f"getLatestMergedFileSlicesBeforeOrOnIncludingInflight {time}": slices(
                    view.getLatestMergedFileSlicesBeforeOrOnIncludingInflight(path, time, LATER)
                ),
                f"getReplacedFileGroupsBeforeOrOn {time}": groups(view.getReplacedFileGroupsBeforeOrOn(time, path)),
                f"getReplacedFileGroupsBefore {time}": groups(view.getReplacedFileGroupsBefore(time, path)),
                f"getReplacedFileGroupsAfterOrOn {time}": groups(view.getReplacedFileGroupsAfterOrOn(time, path)),
            }
            for file_id in ids:
                found[f"getBaseFileOn {time} {file_id}"] = optional(base, view.getBaseFileOn(path, time, file_id))
                found[f"getLatestMergedFileSliceBeforeOrOn {time} {file_id}"] = optional(
                    file_slice, view.getLatestMergedFileSliceBeforeOrOn(path, time, file_id)
                )
        return found

    def _list(self, values: list[str]) -> Any:
        found = self._java.java.util.ArrayList()
        for value in values:
            found.add(value)
        return found


def optional(make: Any, value: Any) -> object:
    """What is in an Option of Hudi."""
    return make(value.get()) if value.isPresent() else None


def listed(stream: Any) -> Any:
    """All of a stream. Iterated over by Py4J, it would end at an exception as if there were no more."""
    return list(stream.toArray())


def bases(stream: Any) -> list[object]:
    """Base files, in an order of their own."""
    return sorted(map(base, listed(stream)))


def slices(stream: Any) -> list[object]:
    """File slices, the same."""
    return sorted((file_slice(each) for each in listed(stream)), key=str)


def groups(stream: Any) -> list[object]:
    """File groups with the slices that count."""
    return sorted(
        (
            [each.getPartitionPath(), each.getFileGroupId().getFileId(), slices(each.getAllFileSlices())]
            for each in listed(stream)
        ),
        key=str,
    )


def base(file: Any) -> list[object]:
    """A base file."""
    return [file.getPath(), str(file.getStoragePath()), file.getFileSize(), file.getCommitTime(), file.getFileId()]


def file_slice(each: Any) -> list[object]:
    """A slice, with its logs in their order."""
    logs = [[str(log.getPath()), log.getFileSize()] for log in listed(each.getLogFiles())]
    return [
        each.getPartitionPath(),
        each.getFileId(),
        each.getBaseInstantTime(),
        optional(base, each.getBaseFile()),
        logs,
    ]


def clustering(pair: Any) -> str:
    """A group that a clustering is pending for. When it came to its state Hudi's own server does not tell its client."""
    instant = pair.getRight()
    return f"{pair.getLeft()} {instant.requestedTime()} {instant.getAction()} {instant.getState()}"


def operation(pair: Any) -> str:
    """What a pending compaction does in one slice; its metrics are a map, in an order of its own."""
    each = pair.getRight()
    metrics = each.getMetrics()
    return f"{pair.getLeft()} {each}".replace(metrics.toString(), str(sorted(metrics.items())))
