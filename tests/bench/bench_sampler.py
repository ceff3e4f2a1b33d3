"""What watching costs: percent of a core, ticks achieved, time to start. Prints, asserts nothing.

python tests/bench/bench_sampler.py [SECONDS]
"""

from __future__ import annotations

import subprocess
import sys
import time

from kit.sensors.stamp import now_ns
from kit.worker.sampler_process import SamplerProcess

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
SPIN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


def watch(label: str, load: str) -> None:
    """Watch one child for SECONDS."""
    child = subprocess.Popen([sys.executable, "-c", load.format(seconds=SECONDS + 5)])
    sampler = SamplerProcess(child.pid)
    begin_ns = now_ns()
    sampler.start()
    ready_ns = now_ns()
    time.sleep(SECONDS)
    end_ns = now_ns()
    sampler.stop()
    child.kill()
    child.wait()
    samples = sampler.samples
    inside = samples.within(ready_ns, end_ns)
    rate_hz = (len(inside) - 1) / ((inside[-1].at_ns - inside[0].at_ns) / 1e9)
    found = sampler.utilization(ready_ns, end_ns)
    print(
        f"{label:<12} start {(ready_ns - begin_ns) / 1e6:5.0f} ms"
        f" (own CPU {samples.ticks[0].sampler_cpu_ns / 1e6:.0f} ms)"
        f"   {rate_hz:.3f} Hz, {samples.missed(0, 2**63)} missed   sampler {found.sampler_cpu_pct:.3f} % of one core"
        f"   watched {found.process_cpu_pct:.1f} %, machine {found.machine_cpu_pct:.1f} %"
    )


watch("idle child", "import time; time.sleep({seconds})")
watch("busy child", SPIN)
