"""What the parity proof holds the backends to."""

from kit.profile.cell import FRAMEWORKS_OWN

# Losses recorded per launch: long enough for a wrong update rule to show.
PARITY_STEPS = 20

# Samples in a parity step, whatever the cell's batch (at most the cell's own). A ReLU whose input is zero to within
# rounding may open in one framework and stay shut in another; under RMSprop the losses part from there by up to 1e-2.
# The chance grows with the batch. Measured over seeds, losses of `mlp` parted in 14 of 20 launches at batch 1024 and in
# 14 of 60 at 128 (MNIST and synthetic data together: 6 of 10 and 2 of 30 on MNIST), but in 1 of 120 at 16.
PARITY_BATCH = 16

# Largest relative difference between two backends' losses at any of these steps. Measured between all pairs of the
# three on `mlp` and `cnn`, batches of 1 to 32: at most 1.0e-6 (float32 keeps 1.2e-7); on the recurrent networks, the
# transformer and the autoencoder at most 2.5e-7. The smallest error planted, GELU by its tanh form, moves a loss by
# 3.1e-5; a learning rate 10 % off in `cnn` by 1.7e-4, another epsilon by 1e-3, a wrong layout by 4e-3 and more.
PARITY_TOLERANCE = 1e-5

# Times that tolerance in other precisions. bfloat16 keeps 4e-3, and frameworks round in other places: `mlp` parted by
# up to 5.5e-2 (RMSprop divides by small numbers), `cnn_small` by 9.5e-3, all others by at most 3.1e-3. This catches a
# wrong kernel, not a wrong epsilon: float32 is where formulas are proved. tf32 keeps more and was not measured; an
# accelerator's default is one of the two.
TOLERANCE_FACTORS = {"bfloat16": 1e4, "tf32": 1e4, FRAMEWORKS_OWN: 1e4}

# Times that tolerance in float32, of cells on unlike hardware, as CPU and GPU. cuDNN chooses Winograd's and FFT
# algorithms for convolutions, whose float32 results lie up to 1e-4 and more from the CPU's: 1.6e-4 of a 5 x 5 layer on
# an RTX 3090 (tensorflow/tensorflow issue 117663); PyTorch and Theano test them with wider tolerances for it
# (pytorch/pytorch 129796, Theano/Theano 5932: 1e-4). Updates carry that on. Formulas are proved on one device: in each
# run all frameworks are held to PARITY_TOLERANCE.
UNLIKE_HARDWARE_FACTOR = 1e2


def parity_tolerance(precision: str, *, like_hardware: bool = True) -> float:
    """Return the largest relative difference of losses that are called equal, of cells in this precision."""
    factor = TOLERANCE_FACTORS.get(precision, 1.0)
    return PARITY_TOLERANCE * (factor if like_hardware else max(factor, UNLIKE_HARDWARE_FACTOR))
