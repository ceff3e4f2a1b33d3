"""The native parts of kit; everything else is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    platforms=["Linux"],
    cffi_modules=["native/build_clock.py:ffibuilder"],
    ext_modules=[
        Extension(
            "kit._stamp",
            sources=["native/stamp.c", "native/clock_source.c"],
            include_dirs=["native"],
            depends=["native/clock.h", "native/clock_read.h"],
            extra_compile_args=["-O2", "-Wall", "-Wextra", "-Werror=implicit-function-declaration"],
            py_limited_api=True,
        )
    ],
    # Both extensions keep to the stable ABI of 3.11, so one wheel serves every later Python.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
