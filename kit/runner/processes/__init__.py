"""The processes of members: on this machine (`local`), or in a container (`container`)."""

from kit.runner.processes.container import ContainerProcess
from kit.runner.processes.local import LocalProcess
from kit.runner.processes.process import MemberRequest, Process


def start_process(request: MemberRequest) -> Process:
    """Start a member's process: in a container where its variant names an image, else on this machine.

    From the main thread: a local process' parent-death signal follows the thread that forks.

    Raises:
        OSError: there is no room for its files.
        EngineError: it is one of an image, and no engine answers or it refuses.
    """
    return LocalProcess(request) if request.variant.image is None else ContainerProcess(request)
