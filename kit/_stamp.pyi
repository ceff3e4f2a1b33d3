from typing import final

from kit.profile.instruments import ClockSource

@final
class StampBuffer:
    """Room for `capacity` stamps of `source`; see native/stamp.c.

    A view (`numpy.asarray(buffer)`) shares its memory and holds the stamps made before the view was: int64, shape
    (count,), read-only; nanoseconds for monotonic_raw, ticks for tsc and cntvct.

    Raises:
        ValueError: capacity below 1, or a source that does not exist or that this processor lacks.
        MemoryError: no memory for so many stamps.
    """

    def __new__(cls, capacity: int, source: ClockSource) -> StampBuffer: ...
    def stamp(self) -> bool:
        """Read the clock now; return whether it is past the limit. Keeps the GIL and makes no object.

        IndexError when full.
        """
    def limit(self, units: int, /) -> None:
        """Let stamps be late from so many units after the last one on; 0: never. ValueError without a stamp."""
    def clear(self) -> None:
        """Forget the stamps. BufferError while a view is alive."""
    @property
    def count(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def source(self) -> ClockSource: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
