"""What hdfs-native raises comes out as the builtin that it is like, with the file, and without the NameNode's stack."""

import errno

import pytest

from hoodie.storage.hdfs_errors import HdfsErrors

JAVA = 'RPCError("org.apache.hadoop.{}", "{}\\n\\tat org.apache.hadoop.Server.run(Server.java:1)")'


@pytest.mark.parametrize(
    ("raised", "kind", "number", "told"),
    [
        (FileExistsError("/t/a for client 127.0.0.1 already exists"), FileExistsError, errno.EEXIST, "File exists"),
        (FileNotFoundError("File does not exist: /t/a"), FileNotFoundError, errno.ENOENT, "No such file"),
        (FileNotFoundError("Path is not a file: /t/a"), IsADirectoryError, errno.EISDIR, "Is a directory"),
        (PermissionError("Permission denied: user=ann"), PermissionError, errno.EACCES, "user=ann"),
        (OSError("connection refused"), OSError, errno.EIO, "cannot be reached: connection refused"),
        (
            RuntimeError(JAVA.format("security.AccessControlException", "/t (is not a directory)")),
            NotADirectoryError,
            errno.ENOTDIR,
            "Not a directory",
        ),
        (
            RuntimeError(JAVA.format("security.AccessControlException", "denied: ann")),
            PermissionError,
            errno.EACCES,
            "ann",
        ),
        (
            RuntimeError(JAVA.format("hdfs.protocol.DSQuotaExceededException", "10 bytes")),
            OSError,
            errno.EDQUOT,
            "quota",
        ),
        (
            RuntimeError(JAVA.format("hdfs.server.namenode.SafeModeException", "on")),
            OSError,
            errno.EROFS,
            "safe mode",
        ),
        (RuntimeError("All nodes failed"), OSError, errno.ENOSPC, "no DataNode takes the bytes"),
        (ValueError("something else"), OSError, errno.EIO, "HDFS failed: something else"),
    ],
)
def test_an_error_is_the_builtin_that_it_is_like(raised, kind, number, told):
    with pytest.raises(kind, match=told) as caught, HdfsErrors("nn:8020").translated("/t/a"):
        raise raised
    assert caught.value.errno == number
    assert caught.value.filename == "hdfs://nn:8020/t/a"
    assert "Server.java" not in str(caught.value)


@pytest.mark.parametrize("raised", [OSError(errno.EBUSY, "a writer holds it", "hdfs://nn:8020/t/a"), RecursionError()])
def test_what_was_said_already_or_is_not_of_hdfs_passes(raised):
    with pytest.raises(type(raised)) as caught, HdfsErrors("nn:8020").translated("/t/a"):
        raise raised
    assert caught.value is raised
