"""Limits of the audit's rules, each with its reason.

Limits that verdicts share stay with what measures them: `kit.compare.clean`, `kit.compare.modes`,
`kit.compare.table` and, for those that a run's runner uses, `kit.devices.gpu`.
"""

from __future__ import annotations

# --- The host
# Cells without a problem had 0 to 2 % of their CPU time in the kernel, one that no remedy helped any further 10 %,
# those that a remedy helped 14 to 49 %.
KERNEL_PCT = 12.0
# The kernel samples user and kernel time at its ticks, 4 ms: 0.5 s are 125 samples, and 12 % is then right to 3 %.
CPU_TIME_NEEDED_NS = 500_000_000
# A fraction of the threads. Small steps never fill all CPUs; below a half, the threads mostly wait.
CPUS_IDLE_FRACTION = 0.5
# An idle CPU is often in the nature of a small step: it is half as urgent as time that is spent on something useless.
IDLE_URGENCY = 0.5
# Counters and threads that come and go blur the use by a few percent; a quarter more is another thread pool.
CPUS_BEYOND_PCT = 25.0
# 256 pages from a fast disk, 100 µs each, are 2.5 % of the time; a machine that moves unused memory out swaps less.
SWAPPED_B_PER_S = 1 << 20
# As for throttling: from here on, a step is off by more than what a verdict calls the same.
MEMORY_PRESSURE_PCT = 1.0
# Pools with more threads than CPUs wait for a CPU by themselves: cells without a problem had up to 38 %.
CPU_PRESSURE_PCT = 60.0
# 40 MiB: nodes borrow less of each other while a process starts.
NUMA_PAGES = 10_000
# 1 MiB per second of the run, as of swapped memory. A longer run borrows more of whatever else the machine does.
NUMA_PAGES_PER_S = 256

# --- Step times
# A mean lies 1 to 3 % above its median by common jitter.
STALLED_PCT = 5.0
# Ceilings are measured at other moments than networks: on shared machines speed differs between them by a third and
# more, and by a factor of two beside a busy program. A step that computes nothing is above by orders of magnitude.
CEILINGS_REACHED, CEILINGS_IMPOSSIBLE = 1.5, 3.0
# Beside as many busy programs as CPUs, threads that spin for each other took ten times as long as alone. So a product
# whose best block others disturbed shows only what is above it by far more.
DISTURBED_CEILINGS_REACHED = 30.0
# A fraction of an empty dispatch. A program that calls its framework directly saves some of it.
DISPATCH_FRACTION = 0.5
# In the reference profiles input takes little time: 101 of 105 fits are below 10 %. One that a neighbor
# disturbed is at 30 %, so a warning needs several fits.
INPUT_PCT, INPUT_WARNED_PCT = 10.0, 25.0

# --- Fairness
# Times as many threads as the framework that obeys: pools differ by a thread or two that wait and hand over work.
HELD_BACK = 2

# --- GPUs
# Boost clocks move in steps of 15 MHz, under 1 % of the rated clock.
RATED_FRACTION = 0.985
# Five steps of 15 MHz, and more than what a verdict calls the same for a step that the clock bounds.
CLOCKS_APART_PCT = 3.0
# Utilization says that some kernel ran, not that it computed. While a kernel computes, GPM's activities are tens of
# percent of the time for which its multiprocessors have work; a kernel that waits or spins has work and no activity.
FULL_PCT, COMPUTING_FRACTION = 95.0, 0.05
# A host that feeds the GPU one kernel of 1 ms each 100 ms is seen in the utilization: at 0 nothing ran at all.
USED_PCT = 0.0

# --- Accelerators
# A worker runs so many steps between two waits that a wait costs less (`kit.runner.pacing`).
WAIT_PCT = 1.0
# A step without a wait of its own takes no longer than one with; blocks of a disturbed machine lie this far apart.
ABOVE_LATENCY_PCT = 20.0
# Host and device were 0.03 to 0.5 % apart in 16 launches on an H100 (docs/trust/tested-on.md).
DEVICE_CLOCK_PCT = 1.0
# Two processes of one cell can differ by 5 % for as long as they live (docs/explanation/method.md), and cuDNN and XLA
# choose other kernels where they have less memory.
TURNS_PCT = 10.0

# --- Sensors of a device, under the loads of the self-test
# A sensor may lag by one update, and by half of one more, as readings have a spacing; no energy block allows for more.
LAG_PERIODS = 1.5
# A period half as long again as the assumed one makes energy blocks too short; fewer changes show no period.
PERIOD_RATIO, FRESH_VALUES = 1.5, 10
# All sensors are read in one tick of the sampler; a tenth of its period leaves room for a slow one.
TICK_PCT = 10.0

# --- Energy
# An unaligned end costs up to one update: of a hundred, 1 %.
UPDATES_NEEDED = 100
# Counters and integrals of one GPU agree to 1 to 3 %.
TIERS_APART_PCT = 5.0
# A package and the platform around it are read at other moments: a few percent are no contradiction.
PARTS_OVER_WHOLE = 1.05
# A percentage of what the cell draws.
IDLE_MOVED_PCT = 10.0
# A GPU keeps its clocks up for some time after its last process has ended: an H100 draws 72 W idle, 106 W then, and
# 122 W with a process that does nothing.
CLOCKS_UP_RATIO = 2.0
# Leakage grows with heat: a GPU that warms faster draws some tenths of a percent more within a block. NVML gives whole
# degrees: one that changes within the block looks like a slope of up to 1.5 degrees over it.
WARMING_C_PER_S, WARMING_C = 0.1, 1.5
