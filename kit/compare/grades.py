"""What each difference between two cells or two profiles means for their numbers: blocks, warns, noted.

blocks   the numbers answer different questions: not compared, unless by force
warns    could explain a difference between the numbers: compared, and said
noted    explains nothing by itself: compared, and listed

A cell's own coordinates (`Cell.key`) are not graded: another batch, precision or compile mode is another cell, and
cells are only ever compared with their like. Hardware and software are what people compare, so they never block.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Grade = Literal["blocks", "warns", "noted"]
# Gravest first.
ORDER: tuple[Grade, ...] = ("blocks", "warns", "noted")


class Grading(NamedTuple):
    """How grave a difference is, and what it may do to the numbers.

    Attributes:
        grade: between profiles of the same hardware.
        effect: one or two sentences for the reader of the numbers; the reason for the grade.
        on_other_hardware: the grade where the hardware differs, too; null: the same.
    """

    grade: Grade
    effect: str
    on_other_hardware: Grade | None = None


# Kind of fact -> its grade and why, in the order in which differences are told.
GRADES: dict[str, Grading] = {
    # Questions. Each of these is what a run was asked to measure, and no property of the machine.
    "data": Grading(
        "blocks",
        "The steps were fed with other samples: training takes another course, its accuracy and losses are another "
        "experiment's, and data set or preparation may differ in ways that change the work of a step.",
    ),
    "arithmetic": Grading(
        "blocks",
        "From the same weights and batches the two compute other losses: they are not the same network, optimizer or "
        "precision, and a difference in time says nothing of who computes it faster.",
    ),
    # Every run takes all the CPUs it may use. On one machine another number is somebody's choice (taskset, a cpuset);
    # on another machine it is what that machine has, and that is what was to be compared.
    "threads": Grading(
        "blocks",
        "How fast a step is with one number of threads says little of another: the work is divided otherwise.",
        on_other_hardware="warns",
    ),
    "planted slow-down": Grading(
        "blocks", "A self-test made these steps slower on purpose: their times are no measurement of the framework."
    ),
    # Hardware.
    "CPU": Grading("warns", "Another processor: whatever differs may be due to it alone."),
    "accelerator": Grading("warns", "Another accelerator: whatever differs on it may be due to it alone."),
    "memory": Grading("warns", "Another size usually means other modules, channels or speeds, and so other bandwidth."),
    "hypervisor": Grading(
        "warns", "A hypervisor takes time for itself and for other guests, and hides clocks and power."
    ),
    "CPU features": Grading(
        "warns", "Libraries choose their kernels by the instructions they find: vectors of other widths, other speed."
    ),
    "microcode": Grading("warns", "Microcode brings mitigations and fixes, some of which cost time."),
    # Two machines of one model: silicon, cooling and neighbours differ, but nothing recorded does.
    "host": Grading(
        "noted", "Two machines: even of one model they differ in silicon, cooling and what else runs on them."
    ),
    # Container.
    "CPU limit": Grading(
        "warns",
        "When the processes have used up their share, the kernel stops them until the next scheduling period: steps "
        "stretch and scatter, and throughput may become a fraction of what the processor gives.",
    ),
    "memory limit": Grading(
        "warns", "Near its limit a container reclaims its page cache or is killed: steps stall, or launches fail."
    ),
    "container": Grading(
        "warns",
        "Another container engine, or none, may mean other limits, file systems, security filters and neighbours.",
    ),
    "container image": Grading("noted", "An image is a name; what it holds is listed as versions."),
    # Software that a step runs through.
    "kernel": Grading("warns", "Scheduling, memory management and mitigations are the kernel's: all steps may move."),
    "accelerator driver": Grading("warns", "The driver compiles and launches what runs on the accelerator."),
    "framework": Grading(
        "warns", "Another version of what is measured: kernels, fusion and overheads change between them."
    ),
    "numerical library": Grading("warns", "The frameworks' arithmetic may run through it."),
    "Python": Grading("warns", "What a framework does between kernels it does in Python: short steps feel it most."),
    "environment variable": Grading("warns", "Libraries read it to choose kernels, threads or compiler options."),
    "kit": Grading("warns", "Another kit may stamp, settle or judge otherwise; its changelog says."),
    "C library": Grading("noted", "Seldom matters: allocation and copies of small blocks."),
    "operating system": Grading("noted", "A name; kernel and libraries are listed by themselves."),
    "framework not compared": Grading("noted", "No compared cell runs it."),
    "library of the kit": Grading("noted", "The kit's own: no measured step runs through it."),
    # Settings of the machine.
    "frequency governor": Grading(
        "warns", "It decides how fast clocks rise and how high: another one, other step times."
    ),
    "turbo": Grading(
        "warns", "With turbo, clocks follow temperature and load; without it they are lower and steadier."
    ),
    "power cap": Grading("warns", "A lower cap lowers the clocks as soon as the load reaches it."),
    "clock limit": Grading("warns", "The device may not run faster than its clock limit."),
    # State: how the machine happened to be.
    "throttled launches": Grading(
        "warns",
        "A throttled launch measures its limit; one that a CPU limit stopped for more than 1 % of the time gives no "
        "number.",
    ),
    "load before": Grading("warns", "What else ran took CPUs, caches and memory bandwidth from the steps."),
    "CPU frequency before": Grading("warns", "Steps of a CPU take time as its clock has it."),
    "temperature before": Grading("warns", "A warm processor reaches its thermal limit sooner and lowers its clocks."),
    "CPU time stolen": Grading("warns", "The hypervisor gave that time to others while steps were waiting for it."),
    "waiting for CPUs": Grading(
        "warns", "Tasks were ready to run and found no free CPU: steps shared them with others."
    ),
    # How it was measured.
    "step plan": Grading(
        "warns", "Shorter launches see less of what comes slowly: clocks that fall, caches and compilers that settle."
    ),
    "clock": Grading(
        "noted", "Sources differ by some tens of nanoseconds a stamp: nothing, but for the shortest steps."
    ),
    "sensor": Grading("noted", "What only one of the two could measure (power, clocks) compares with nothing."),
    # The data a seed chooses is compared by itself.
    "seed": Grading("noted", "Other weights and another order: the times of dense layers do not depend on them."),
    "suite": Grading("noted", "A name; what the suite asked for is in the cells and in the step plan."),
    "launches asked for": Grading("noted", "More launches make narrower intervals, not other centres."),
    "schema": Grading("noted", "The profile's format: what an older one did not record cannot be compared."),
}


def grade_of(kind: str, *, like_hardware: bool) -> Grade:
    """The grade of a difference in `kind`, a key of `GRADES`."""
    grading = GRADES[kind]
    if like_hardware or grading.on_other_hardware is None:
        return grading.grade
    return grading.on_other_hardware
