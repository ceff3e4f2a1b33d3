"""What a profile says of people and machines."""

import platform
import zipfile

import pytest
from kit_process import REPOSITORY, invoke, kit
from profile_builder import group, member, profile
from refusals import refused
from small_suite import SUITE

from kit.fingerprint import private
from kit.fingerprint.private import CUT, cleaned, hashed, published, recorded
from kit.profile.cell import Variant
from kit.profile.facts import Facts
from kit.profile.program_source import ProgramSource
from kit.profile.store import read_profile, write_profile

TOKEN = "hf_" + "aB3" * 10
UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A machine without an id, whose salt no other test has."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(private, "MACHINE_ID", tmp_path / "machine-id")
    private._salt.cache_clear()
    yield tmp_path / "state"
    private._salt.cache_clear()


SECRET_NAMES = (
    "HF_TOKEN XLA_AUTH TF_PAT MY_PASS JAX_PW TORCH_KEY NCCL_BEARER TF_PRIVATE_X MYAPIKEY TF_DBPASS "
    "TF_APPKEY X_SESSION A_COOKIE AWS_SECRET_ACCESS_KEY MLFLOW_TRACKING_USERNAME"
)


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_secret_by_its_name_is_cut(name):
    assert recorded(name, "hunter2").startswith(CUT) and "hunter2" not in recorded(name, "hunter2")
    assert recorded(name, "hunter2") != recorded(name, "hunter3")


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("XLA_FLAGS", f"--x={TOKEN}", TOKEN),
        ("TF_PROXY", "http://me:hunter2@proxy.example:3128", "proxy.example"),
        ("MALLOC_CONF", "https://me:hunter2@host/x", "hunter2"),
        ("JAX_COORDINATOR_ADDRESS", "10.1.2.3:1234", "10.1"),
        ("NCCL_SOCKET_IFNAME", "52:54:00:ab:cd:ef", "ab:cd"),
        ("CUDA_VISIBLE_DEVICES", UUID, UUID[4:12]),
        ("CUDA_VISIBLE_DEVICES", "MIG-8932f937", "8932f937"),
        ("TORCH_X", "Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
        ("TF_X", "x?token=hunter2&y=1", "hunter2"),
        ("ONEDNN_X", "0123456789abcdef0123456789abcdef", "0123456789abcdef"),
        ("TF_X", "somebody@example.org", "somebody"),
        ("TF_X", "/home/somebody/models", "somebody"),
        ("TF_CONFIG", "{", "{"),
        ("NCCL_COMM_ID", "10.0.0.5:1234", "10.0"),
        ("GLOO_X", "[fd00::12]:9", "fd00"),
        ("TF_X", "https://me:hun@ter2@host/x", "ter2"),
        ("TF_X", "a:env=DB_PASS=hunter2,env=X=1", "hunter2"),
        ("TF_X", "/mnt/nfs/home/somebody/x", "somebody"),
        ("TF_X", "serve --api-token hunter2 --port 1", "hunter2"),
        ("TF_X", "npm_" + "aB3" * 12, "aB3aB3"),
    ],
)
def test_a_secret_by_its_form_is_not_recorded(name, value, secret):
    assert secret not in recorded(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_NUM_THREADS", "2"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=128 --xla_gpu_enable_latency_hiding_scheduler=true"),
        ("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"),
        ("LD_LIBRARY_PATH", "/nix/store/0c5ywjzxx5lhxjbzpmqsyfxgcgyd2n3q-glibc-2.39/lib"),
        ("TF_GPU_HOST_MEM_LIMIT_IN_MB", "4096"),
        ("CUDA_VISIBLE_DEVICES", "0,1"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,garbage_collection_threshold:0.8"),
        ("MALLOC_CONF", "background_thread:true,metadata_thp:auto"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("XLA_FLAGS", "--xla_gpu_x=key:value --a=10.2.1.3"),
        ("TF_GPU_THREAD_MODE", "gpu_private"),
        ("XLA_FLAGS", "--xla_disable_hlo_passes=a"),
        ("MALLOC_CONF", "max_tokens: 5 model_path: /x LD_LIBRARY_PATH=/y pass: z author: w"),
        ("KIT_NO_ALL_REDUCE", "1"),
        ("XLA_FLAGS", "--xla_use_token --xla_y=1"),
    ],
)
def test_what_decides_a_number_stays(name, value):
    assert recorded(name, value) == value


def test_a_host_is_not_found_by_trying_names_and_is_the_same_tomorrow(state):
    first = hashed("gpu-7")
    private._salt.cache_clear()
    assert hashed("gpu-7") == first
    assert (state / "steadykit/salt").stat().st_mode & 0o777 == 0o600
    (state / "steadykit/salt").unlink()
    private._salt.cache_clear()
    assert hashed("gpu-7") != first


@pytest.mark.parametrize("engine", [None, "docker"])
def test_users_of_a_machine_with_an_id_have_the_same_hashes_but_not_where_it_is_an_images(state, monkeypatch, engine):
    monkeypatch.setattr(private, "container", lambda: Facts(facts={"container.engine": engine}))
    private.MACHINE_ID.write_text(f"{'0123456789abcdef' * 2}\n")
    first = hashed("gpu-7")
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "another user"))
    private._salt.cache_clear()
    assert (hashed("gpu-7") == first) == (engine is None)
    private.MACHINE_ID.write_text("uninitialized\n")
    private._salt.cache_clear()
    assert hashed("gpu-7") != first


def test_a_salt_that_was_cut_is_none(state):
    (state / "steadykit").mkdir(parents=True)
    (state / "steadykit/salt").touch()
    assert len(private._salt()) >= private.SALT_B


def test_the_home_folder_is_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cleaned(f"{tmp_path}/a.py: no") == "~/a.py: no"
    assert cleaned(f"{tmp_path}-other/a.py") == f"{tmp_path}-other/a.py"


MODEL = """
import sys, numpy as np
def good(batch, device):
    x = np.ones((64, 64), np.float32)
    return lambda: x @ x
def bad(batch, device):
    print("TOKEN_PRINTED", file=sys.stderr)
    raise ValueError("cannot read https://me:hunter2@models.example/x with Bearer bearerbearer1234")
"""


# Secrets by their names, and by their forms.
NAMED = {
    "OMP_PASS": "passphrase-of-omp", "TF_PAT": "pat-of-tf", "JAX_KEY": "key-of-jax", "TORCH_BEARER": "bearer-of-torch",
    "KMP_PRIVATE": "private-of-kmp", "ONEDNN_AUTH": "auth-of-onednn", "MKL_NOTE": "someone@mail.example",
    "OPENBLAS_NOTE": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
}  # fmt: skip


def test_twenty_secrets_of_a_machine_are_in_no_profile_page_or_export(tmp_path, nvml_folder, monkeypatch):
    home = tmp_path / "firstname.lastname"
    (home / "project").mkdir(parents=True)
    forms = {"PRINTED": "ghp_" + "x1Y" * 10, "FLAG": TOKEN, "JWT": "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"}
    forms["AWS"] = "AKIA" + "Q7" * 8
    (home / "project/my_model.py").write_text(MODEL.replace("TOKEN_PRINTED", forms["PRINTED"]))
    environment = {
        "HOME": str(home),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "LD_LIBRARY_PATH": str(nvml_folder),
        "XLA_FLAGS": f"--xla_dump_to={home}/dump --key={forms['FLAG']}",
        "TF_CONFIG": '{"cluster": {"worker": ["node-a.example:2222"]}, "task": {"type": "worker"}}',
        "JAX_COORDINATOR_ADDRESS": "198.51.100.7:1234",
        "CUDA_VISIBLE_DEVICES": UUID,
        "MALLOC_CONF": "https://admin:swordfish@store.example/conf",
        "NCCL_SOCKET_IFNAME": "52:54:00:12:34:56",
        **NAMED,
    }
    secrets = [
        *forms.values(), *NAMED.values(), UUID[4:], "firstname.lastname", "node-a.example", "198.51.100.7", "swordfish",
        "52:54:00:12:34:56", "hunter2", "bearerbearer1234", "variant-token", "variant-pw",
        *([platform.node()] if len(platform.node()) >= private.HOST_NAME_MIN else []),
    ]  # fmt: skip
    assert len(secrets) >= 20
    folder = home / "project"
    (folder / "small.toml").write_text(SUITE)
    words = ["small.toml", "--threads", "1", "--out", "run.json"]
    programs = ["--program", folder / "my_model.py:good", "--program", folder / "my_model.py:bad"]
    variants = ["--variant", f"a:env=HF_TOKEN=variant-token,env=AWS={forms['AWS']}"]
    variants += ["--variant", f"b:env=PG_URL=postgres://u:variant-pw@h/d,env=X={forms['JWT']}"]
    done = kit(folder, "run", *programs, *variants, *words, **environment)
    assert done.returncode == 3, done.stderr
    assert read_profile(folder / "run.json").suite.variants[0].env["HF_TOKEN"].startswith(CUT)
    written = {path.name: path.read_bytes() for path in folder.glob("run.json*")}
    for path in folder.glob("*.npz"):
        with zipfile.ZipFile(path) as archive:
            written[path.name] = b"".join(map(archive.read, archive.namelist()))
    monkeypatch.chdir(folder)
    for words in (
        ("report", "run.json", "--out", "page.html"),
        ("export", "asv", "run.json", "--commit", "0123456789" * 4, "--out", "asv"),
        ("export", "parquet", "run.json", "--level", "launches", "--out", "run.parquet"),
    ):
        assert invoke(*words).exception is None
    written |= {path.name: path.read_bytes() for path in (folder / "page.html", *folder.rglob("asv/**/*.json"))}
    assert b"<html" in written["page.html"]
    written["parquet"] = (folder / "run.parquet").read_bytes()
    for shown in (
        *(("compare", "--format", each) for each in ("text", "markdown", "csv", "json", "junit", "prometheus")),
        ("compare", "--why"),
        ("audit",),
        ("audit", "--format", "json"),
        ("show",),
        ("show", "--json"),
        *(("export", each) for each in ("bmf", "github-benchmark", "trace")),
    ):
        printed = invoke(*shown, "run.json")
        assert printed.exception is None and printed.output_bytes
        written[" ".join(shown)] = printed.output_bytes
    leaks = [(where, secret) for where, content in written.items() for secret in secrets if secret.encode() in content]
    assert leaks == []


def test_one_switch_records_names_only(tmp_path):
    model = tmp_path / "my_model.py"
    model.write_text(MODEL)
    (tmp_path / "small.toml").write_text(SUITE)
    words = ["small.toml", "--threads", "1", "--env-names-only", "--out", "run.json"]
    variants = ["--variant", "a:env=MY_SETTING=on", "--variant", "b"]
    done = kit(tmp_path, "run", "--program", f"{model}:good", *variants, *words, MALLOC_ARENA_MAX="7")
    assert done.returncode == 0, done.stderr
    facts = read_profile(tmp_path / "run.json").identity.facts
    assert facts["environment.MALLOC_ARENA_MAX"].startswith("<not recorded> #")
    assert read_profile(tmp_path / "run.json").suite.variants[0].env["MY_SETTING"].startswith("<not recorded> #")
    for command in ("compare", "audit", "show"):
        assert kit(tmp_path, command, "run.json").returncode in (0, 1, 5)
    assert str(REPOSITORY) not in (tmp_path / "run.json").read_text()


@pytest.mark.parametrize(
    "host", ["train", "torch", "eager", "float32", "device", "blocks", "measured", "default", "program"]
)
def test_a_host_with_an_ordinary_name_costs_no_profile(monkeypatch, tmp_path, host):
    monkeypatch.setattr(platform, "node", lambda: host)
    built = profile(group("mlp", member("torch", 2.0), member("jax", 1.0)), rounds=3, cycles=3)
    built.suite.variants.append(Variant(name="env", env={"A": "1"}))
    write_profile(tmp_path / "run.json", published(built), is_checked=True)
    assert [result.key for result in read_profile(tmp_path / "run.json").cells] == [
        result.key for result in built.cells
    ]


def test_programs_and_variants_may_be_called_as_fields_are():
    built = profile(group("mlp", member("torch", 2.0)), rounds=2, cycles=2)
    source = ProgramSource(path="/x/env.py", function="program", takes_task=False, sha256="a" * 64)
    built.suite.programs.update(dict.fromkeys(("env", "environment", "values", "code"), source))
    assert published(built).suite.programs == built.suite.programs


def test_what_no_reader_would_take_replaces_nothing(tmp_path):
    built = profile(group("mlp", member("torch", 2.0)), rounds=2, cycles=2)
    write_profile(tmp_path / "run.json", built, is_checked=True)
    before = (tmp_path / "run.json").read_bytes()
    built.cells[0].launches[0].blocks.span_ns[0] = 2**62
    assert "report this" in refused(write_profile, tmp_path / "run.json", built, is_checked=True)
    assert (tmp_path / "run.json").read_bytes() == before
