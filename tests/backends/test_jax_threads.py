import pytest

pytestmark = pytest.mark.frameworks


def test_a_thread_that_ends_while_threads_are_counted_costs_nothing(tmp_path, monkeypatch):
    """Once in some hundred launches one of JAX's own did, and the launch failed in its import."""
    jax_threads = pytest.importorskip("kit.backends.jax_threads", reason="JAX is missing: make setup")
    monkeypatch.setenv(jax_threads.POOL_VARIABLE, "2")
    for number, name in enumerate((jax_threads.POOL_THREAD_NAME, "python", jax_threads.POOL_THREAD_NAME)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "comm").write_text(f"{name}\n")
    (tmp_path / "3").mkdir()  # its comm has gone
    monkeypatch.setattr(jax_threads, "TASKS", tmp_path)
    assert jax_threads.set_pool_threads(2).reported == 2
