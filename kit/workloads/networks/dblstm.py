"""`dblstm(layers, units)`: the deep bidirectional LSTM of the dblstm-har system, over windows of nine signals."""

from kit.workloads.layers import Dense
from kit.workloads.optimizers import Adam
from kit.workloads.recurrent import LSTM
from kit.workloads.workload import Family, Workload

LAST_UNITS = 64


def build(layers: int, units: int) -> Workload:
    """Return the network: `layers - 1` bidirectional LSTMs and one LSTM of 64 units; one layer is bidirectional."""
    lstms = [LSTM(units, sequences=True, bidirectional=True)] * (layers - 1)
    lstms.append(LSTM(LAST_UNITS) if lstms else LSTM(units, bidirectional=True))
    return Workload(
        name="dblstm",
        data="uci_har",
        input_shape=(128, 9),
        classes=6,
        layers=(*lstms, Dense(6)),
        optimizer=Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
    )


DBLSTM = Family(name="dblstm", data="uci_har", defaults={"layers": 2, "units": 64}, build=build)
