"""Ports for servers of tests."""

import random
import socket

BELOW_EPHEMERAL = range(15_000, 30_000)
"""Systems give outgoing connections ports from 32,768 on: one of those may be taken between its choice and the server's start."""


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, at random, so that two that ask at once hardly get the same."""
    found: list[int] = []
    for port in random.SystemRandom().sample(BELOW_EPHEMERAL, 50 * count):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"no {count} free ports in {BELOW_EPHEMERAL}")
