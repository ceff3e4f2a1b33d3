"""The launcher of a run: a member's variant says whether it is a process or a container."""

from __future__ import annotations

from functools import cached_property

from kit.runner.launchers.image import ImageLauncher
from kit.runner.launchers.local import LocalLauncher
from kit.runner.launchers.protocol import Member, MemberRequest
from kit.runner.stop import StopFlag


class MixedLauncher:
    """Starts members of one run.

    Args:
        stop: looked at while a member works.
    """

    def __init__(self, stop: StopFlag) -> None:
        self._stop = stop
        self._local = LocalLauncher(stop)

    def start(self, request: MemberRequest) -> Member:
        """Start a member. EngineError where it is one of an image, and the engine refuses."""
        launcher = self._local if request.variant.image is None else self._images
        return launcher.start(request)

    @cached_property
    def _images(self) -> ImageLauncher:
        return ImageLauncher(self._stop)
