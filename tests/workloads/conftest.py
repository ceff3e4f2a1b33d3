from mirror import no_network, serve  # noqa: F401 - fixtures
