"""Clients that never finish their requests, and clients without the token, shut nobody out."""

import http.client
import socket

import pytest

from hoodie.timeline_server.server import HEAD_S, MOST_STRANGERS, REQUEST_S, serve
from tests.timeline_server.asking import Asking, made

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def table(tmp_path):
    return made(tmp_path)


@pytest.fixture
def server(table, clock):
    with serve(table._context, now_s=clock) as started:
        yield started


def connected(server, sent=b""):
    client = socket.create_connection((server.host, server.port), 10)
    client.sendall(sent)
    return client


def authorized(server):
    return HEAD + f"Authorization: Bearer {server.token}\r\n".encode()


def is_closed(server, client, *, within_s=5):
    """Whether the server ends the connection; it is woken for that."""
    server._server.pull_trigger()
    client.settimeout(within_s)
    try:
        while client.recv(1 << 16):
            continue
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def answer(client):
    return client.recv(1 << 16).split(b"\r\n")[0]


def settle(server, table):
    """The server has read all that was sent before: it takes turns."""
    assert Asking(server, table).request("GET", "/v1/hoodie/view/timeline/instant/last").status == 200


def test_a_head_that_comes_byte_by_byte_has_a_deadline(server, table, clock):
    slow = connected(server, b"GET / HTTP/1.1\r\nX: ")
    silent = connected(server)
    settle(server, table)
    clock.now_s += HEAD_S - 1
    slow.sendall(b"a")
    settle(server, table)
    clock.now_s += 2
    assert is_closed(server, slow)
    assert is_closed(server, silent)


def test_who_has_shown_the_token_has_longer_for_the_next_request(server, table, clock):
    asked = http.client.HTTPConnection(server.host, server.port)
    asked.request("GET", "/", headers={"authorization": f"Bearer {server.token}"})
    assert asked.getresponse().read()
    client = asked.sock
    client.sendall(authorized(server))
    while not any(each.request for each in [*server._server.active_channels.values()]):
        settle(server, table)  # a thread may still be at the end of the first request
    clock.now_s += HEAD_S + 1
    assert not is_closed(server, client, within_s=0.2)
    clock.now_s += REQUEST_S
    assert is_closed(server, client)


def test_a_wrong_token_is_none(server, table, clock):
    client = connected(server, HEAD + b"Authorization: Bearer none\r\n\r\n")
    assert answer(client) == b"HTTP/1.1 401 Unauthorized"
    settle(server, table)
    clock.now_s += HEAD_S + 1
    assert is_closed(server, client)


def test_more_strangers_than_have_a_place_shut_nobody_out(server, table, clock):
    strangers = []
    for number in range(MOST_STRANGERS + 20):
        clock.now_s += 0.001
        strangers.append(connected(server, b"GET / HTTP/1.1\r\nX: "))
        if number % 40 == 0:
            settle(server, table)
    settle(server, table)
    client = connected(server, authorized(server) + b"\r\n")
    assert answer(client) == b"HTTP/1.1 200 OK"
    assert all(is_closed(server, each) for each in strangers[:20])
    assert not is_closed(server, strangers[-1], within_s=0.1)
    for each in (*strangers, client):
        each.close()
