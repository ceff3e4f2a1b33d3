"""The sizes at which the networks of accelerators are measured on a CPU, as in `kit run accelerator --quick`."""

SIDE, FILTERS = 64, 16
DEPTHS = (3, 4, 6, 3)
WIDTH, DEPTH, HEADS, LENGTH, VOCABULARY = 128, 4, 4, 128, 4096

PARAMETERS = {
    "resnet50": {"side": SIDE, "filters": FILTERS},
    "gpt2": {"width": WIDTH, "depth": DEPTH, "heads": HEADS, "length": LENGTH, "vocabulary": VOCABULARY},
}
