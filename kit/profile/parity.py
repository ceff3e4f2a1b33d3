"""What the parity proof holds the backends to."""

# Losses recorded per launch: long enough for a wrong update rule to show, short enough to cost under a second.
PARITY_STEPS = 20

# Largest relative difference between two backends' losses at any of these steps. float32 sums taken in another order
# differ by about 1e-6 a step and the optimizer amplifies that; a wrong hyperparameter differs by more than 1e-2.
PARITY_TOLERANCE = 1e-3
