import pytest
from scripted_launcher import ScriptedLauncher, Watching, plan_of, suite

from kit.profile.unfinished import UnfinishedRun
from kit.runner import round as round_module
from kit.runner.interrupt import StopFlag
from kit.runner.running import RunUnderWay

PLAN_FIELDS = ("precision_pct", "cycles", "seed", "energy_s", "energy_rounds", "sensors", "fit_rounds")


class Conducted:
    """A run in a folder, conducted with scripted workers; it can be gone on with."""

    def __init__(self, path, plan):
        self.path, self.plan = path, plan
        self.stop, self.watching = StopFlag(), Watching()

    def begin(self, launcher=None, budget_s=None, at_block=None):
        return self._conduct(RunUnderWay.begin(self.path, self.plan), launcher, budget_s, at_block)

    def go_on(self, launcher=None, budget_s=None, at_block=None):
        kept = UnfinishedRun.reopen(self.path)
        return self._conduct(RunUnderWay(kept, kept.plan), launcher, budget_s, at_block)

    def _conduct(self, run, launcher, budget_s, at_block):
        self.run, self.stop = run, StopFlag()
        self.launcher = launcher or ScriptedLauncher()
        self.watching = Watching(at_block or (lambda count: None))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(round_module, "stay_idle", self.launcher.stay_idle)
            return run.run(self.watching, self.stop, budget_s, start=self.launcher.start)

    def interrupt_at(self, block):
        def at_block(count):
            self.stop.requested = count >= block

        return at_block


@pytest.fixture
def conducted(tmp_path):
    def make(**fields):
        planned = {name: fields.pop(name) for name in list(fields) if name in PLAN_FIELDS}
        return Conducted(tmp_path / "run.json", plan_of(suite(**fields), **planned))

    return make
