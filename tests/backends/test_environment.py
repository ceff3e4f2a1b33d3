"""Which environment variables decide how fast a framework is."""

from kit.backends.catalog import CATALOG
from kit.backends.environment import decided_by_environment


def test_a_label_of_nvidias_images_is_no_setting_of_nccl():
    variables = {"NCCL_VERSION": "2.28.3-1", "NCCL_ALGO": "Ring"}
    assert decided_by_environment(CATALOG["torch"], variables, threads_set=True) == {"NCCL_ALGO": "Ring"}
