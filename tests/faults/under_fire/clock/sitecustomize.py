"""Sets this process's wall clock off by FIRE_CLOCK_S seconds; its monotonic clock stays."""

import datetime as _module
import os
import time

_OFF_S = float(os.environ.get("FIRE_CLOCK_S", "0"))
_time, _time_ns, _real = time.time, time.time_ns, _module.datetime
time.time = lambda: _time() + _OFF_S
time.time_ns = lambda: _time_ns() + int(_OFF_S * 1e9)


class _Meta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _real)


class _Shifted(_real, metaclass=_Meta):
    @classmethod
    def now(cls, tz=None):
        return _real.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return _real.fromtimestamp(time.time(), _module.UTC).replace(tzinfo=None)


if _OFF_S:
    _module.datetime = _Shifted
