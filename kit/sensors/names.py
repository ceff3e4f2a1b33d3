"""Names of the sensors that every host is asked for. Sensors of a board or a package carry its number or its name."""

from __future__ import annotations

PROCESS_TIME = "cpu.process_time"
MACHINE_TIME = "cpu.machine_time"
RESIDENT_MEMORY = "cpu.resident_memory"
FREQUENCY = "cpu.frequency"
THROTTLED_TIME = "cgroup.throttled_time"
THROTTLED_COUNT = "cgroup.throttled_count"
