# SPDX-License-Identifier: Apache-2.0
"""How ranks meet."""
from __future__ import annotations

from typing import Any, Callable, Mapping

from khoro import _core
from khoro.communicator import Communicator


def _settings(settings: Mapping[str, Any] | None) -> str | None:
    return ";".join(f"{name}={value}" for name, value in settings.items()) if settings else None


def world(settings: Mapping[str, Any] | None = None) -> Communicator:
    """Joins the job that the launcher describes: ``khoro run -n 4 python program.py``.

    ``settings`` are those of `khoro info` for this communicator, {"KHORO_DEADLINE": "5s"}; the
    environment wins. Collective; blocks until all ranks have come, or raises who did not.
    """
    return Communicator(_core.init_world(_settings(settings)))


def unique_id() -> bytes:
    """128 bytes with which ranks meet. Rank 0 makes them, in its process, and passes them to the
    others. Who can read them can join: do not print them."""
    return _core.unique_id()


def join(id: bytes, size: int, rank: int, settings: Mapping[str, Any] | None = None) -> Communicator:
    """Joins as rank ``rank`` of ``size`` the ranks that present the same id. As world otherwise."""
    return Communicator(_core.init_rank(size, id, rank, _settings(settings)))


def over(exchange: Callable[[bytes], bytes], size: int, rank: int,
         settings: Mapping[str, Any] | None = None) -> Communicator:
    """Joins the ranks that ``exchange`` connects: it takes this rank's bytes and returns those of all
    ranks one behind the other, in the order of ranks; it is called twice. As world otherwise."""
    return Communicator(_core.init_over(size, rank, exchange, _settings(settings)))


def threads(size: int) -> list[Communicator]:
    """``size`` ranks in this process, connected directly, each for a thread of its own. Local."""
    return [Communicator(handle, inherits=False) for handle in _core.init_all_host(size)]
