"""What a backend says when it cannot do what a cell asks."""

from kit.errors import KitError


class BackendError(KitError):
    """A cell, a backend's name or an environment that cannot work."""
