"""Steadykit: how fast, and at what cost in power, the same network runs in TensorFlow, PyTorch and JAX."""
