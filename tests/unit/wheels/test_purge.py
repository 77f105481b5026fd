from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.unit.core.plan.steps.test_uninstall import snapshot
from tests.unit.facts.installs import checkout, editable, install, put, python_of, site_of, triton
from tritonsmith.core.errors import OwnershipError, SmithError
from tritonsmith.core.plan import Plan, Uninstall
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.wheels import purge


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """An environment with a neighbour that nobody may touch."""
    prefix = tmp_path / "an env"
    install(site_of(prefix), "packaging", "26.0", {"packaging/__init__.py": "x", "../../../bin/pack": "#!x"})
    return prefix


def act(prefix: Path, plan: Plan) -> None:
    Runner(prefix.parent / "log", PhaseProgress(live=False, silent=True)).run(plan)


def purged(prefix: Path) -> purge.Survey:
    """Survey, and act on it."""
    survey = purge.survey(python_of(prefix))
    act(prefix, survey.plan)
    return survey


def names(prefix: Path) -> list[str]:
    return list(snapshot(prefix))


def test_nothing_to_do(env: Path) -> None:
    survey = purge.survey(python_of(env))
    assert (survey.rows, survey.refused, survey.notes, survey.plan.steps) == ((), (), (), ())
    assert purge.survey(python_of(env)).plan.steps == ()
    assert purge.recovery(python_of(env)).steps == ()


def test_two_wheels_that_share_files_leave_nothing(env: Path) -> None:
    before = snapshot(env)
    site = site_of(env)
    triton(site, "pytorch_triton_rocm", "2.0.2", compiler="rocm", old="only rocm")
    triton(site, "triton", "3.5.0", compiler="cuda", new="only triton")
    put(site, {"triton/__pycache__/old.cpython-38.pyc": "", "triton/tools/__init__.py": "nobody's"})
    (site / "triton" / "empty").mkdir()
    survey = purged(env)
    assert snapshot(env) == before
    assert sorted(path.name for path in site.iterdir()) == ["packaging", "packaging-26.0.dist-info"]
    assert [(row.title, row.what, row.files) for row in survey.rows] == [
        ("pytorch-triton-rocm 2.0.2", "PyTorch's build for ROCm, until 2.9", 9),  # with what both list
        ("triton 3.5.0", "the release of triton-lang", 4),
        ("(no owner)", "1 below triton/", 1),
    ]
    assert survey.rows[0].size > 0
    assert purge.survey(python_of(env)).plan.steps == ()
    assert purge.still_found(python_of(env)) is None


def test_who_goes_is_read_from_files_and_not_from_names(env: Path) -> None:
    site = site_of(env)
    install(site, "torch", "2.9.0", {"torch/triton/x.py": "", "torch/_inductor/triton.py": ""})
    install(site, "tritonclient", "2.0", {"tritonclient/__init__.py": ""})
    install(site, "triton_kernels", "1.0", {"triton_kernels/__init__.py": ""})
    before = snapshot(env)
    install(site, "somebodys_fork", "1", {"triton/__init__.py": "", "triton/backends/mine/x.py": ""})
    assert [row.title for row in purged(env).rows] == ["somebodys-fork 1"]
    assert snapshot(env) == before


def test_a_file_that_one_who_stays_lists_as_well_stays(env: Path) -> None:
    site = site_of(env)
    install(
        site, "neighbour", "1.0", {"neighbour.py": "", "LICENSE": "shared", "../../../bin/proton": "shared"}
    )
    before = snapshot(env)
    install(
        site,
        "triton",
        "3.5.0",
        {"triton/__init__.py": "", "LICENSE": "shared", "../../../bin/proton": "shared"},
    )
    purged(env)
    assert snapshot(env) == before


@pytest.mark.parametrize("name", ["triton/../neighbour/x.py", "triton/nvidia/x.py"])
def test_an_entry_that_leads_out_of_triton_takes_nobodys_file(env: Path, name: str) -> None:
    site = site_of(env)
    install(site, "neighbour", "1.0", {"neighbour/x.py": "its own"})
    before = snapshot(env)
    install(site, "triton", "3.5.0", {"triton/__init__.py": ""}, also_recorded=(name,))
    (site / "triton" / "nvidia").symlink_to(site / "neighbour")
    purged(env)
    assert snapshot(env) == before


def test_a_name_that_is_no_utf_8(env: Path) -> None:
    """The plan, the log and the journal hold it."""
    before = snapshot(env)
    triton(site_of(env))
    (site_of(env) / "triton" / os.fsdecode(b"caf\xe9.so")).touch()
    purged(env)
    assert snapshot(env) == before


@pytest.mark.parametrize("finder", [True, False])
def test_an_editable_install_goes_and_its_sources_stay(env: Path, tmp_path: Path, finder: bool) -> None:
    source = checkout(tmp_path / "my checkout")
    before, mine = snapshot(env), snapshot(source)
    editable(site_of(env), source, finder=finder)
    put(
        site_of(env),
        {"__pycache__/__editable___triton_3_6_0_finder.cpython-311.pyc": "", "__pycache__/six.pyc": ""},
    )
    survey = purged(env)
    assert survey.rows[0].what == f"editable: {source}"
    assert "the source tree is not changed" in survey.notes[0]
    assert snapshot(source) == mine
    left = {name: entry for name, entry in snapshot(env).items() if "__pycache__" not in name}
    assert left == before
    pycs = [name for name in snapshot(env) if name.endswith(".pyc")]
    assert len(pycs) == (1 if finder else 2)


def test_an_egg_link_goes_and_easy_install_loses_its_line(env: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "my checkout")
    put(source / "python" / "triton.egg-info", {"PKG-INFO": "Version: 2.1.0\n", "top_level.txt": "triton\n"})
    site = site_of(env)
    mine = snapshot(source)
    put(
        env / "bin",
        {
            "proton": "#!/x/python\n# EASY-INSTALL-DEV-SCRIPT: 'triton==2.1.0','proton'\n",
            "other": "#!/x 'triton'",
        },
    )
    easy = f"import sys; sys.__plen = 1\n/src/other\n{source / 'python'}\n"
    put(site, {"triton.egg-link": f"{source / 'python'}\n../", "easy-install.pth": easy})
    survey = purged(env)
    assert [(row.title, row.files) for row in survey.rows] == [("triton 2.1.0", 2)]
    assert (site / "easy-install.pth").read_text() == "import sys; sys.__plen = 1\n/src/other\n"
    assert not (site / "triton.egg-link").exists()
    assert sorted(path.name for path in (env / "bin").iterdir()) == ["other", "pack"]
    assert snapshot(source) == mine


def test_eggs_and_egg_infos_go(env: Path) -> None:
    before = snapshot(env)
    site = site_of(env)
    put(site / "triton-2.0.0-py3.8.egg", {"EGG-INFO/top_level.txt": "triton\n", "triton/__init__.py": ""})
    put(
        site / "pytorch_triton-2.1.0-py3.8.egg-info",
        {"top_level.txt": "triton\n", "installed-files.txt": "../triton/a.py\n"},
    )
    put(site, {"triton/a.py": "", "easy-install.pth": "./triton-2.0.0-py3.8.egg\n./other.egg\n"})
    purged(env)
    assert (site / "easy-install.pth").read_text() == "./other.egg\n"
    (site / "easy-install.pth").unlink()
    assert snapshot(env) == before


def test_what_nobody_owns_goes_too(env: Path) -> None:
    before = snapshot(env)
    put(
        site_of(env),
        {
            "triton/_C/libtriton.so": "copied in",
            "triton/gone.pyc": "",
            "~riton/x.py": "",
            "~riton-3.5.0.dist-info/RECORD": "triton/__init__.py,,\n",
            "__editable__.triton-3.4.0.pth": "/gone\n",
        },
    )
    survey = purged(env)
    assert snapshot(env) == before
    assert not list(site_of(env).glob("~*"))
    assert [row.title for row in survey.rows] == [purge.NOBODY]
    assert "copied in: libtriton.so" in survey.rows[0].what


def test_folders_without_a_file_go_too(env: Path) -> None:
    before = snapshot(env)
    (site_of(env) / "triton" / "_C").mkdir(parents=True)
    (site_of(env) / "~riton").mkdir()
    survey = purged(env)
    assert snapshot(env) == before
    assert sorted(path.name for path in site_of(env).iterdir()) == ["packaging", "packaging-26.0.dist-info"]
    assert [(row.title, row.files) for row in survey.rows] == [(purge.NOBODY, 0)]


def test_a_link_is_unlinked_and_its_target_stays(env: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "src")
    put(source, {"python/triton/_C/libtriton.so": "built"})
    before, mine = snapshot(env), snapshot(source)
    site = site_of(env)
    install(site, "triton", "3.5.0", also_recorded=("triton/__init__.py",))
    (site / "triton").symlink_to(source / "python" / "triton")
    survey = purged(env)
    assert snapshot(env) == before
    assert snapshot(source) == mine
    assert survey.refused == (site / "triton" / "__init__.py",)


def test_links_inside_are_not_followed(env: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "src")
    before, mine = snapshot(env), snapshot(source)
    triton(site_of(env))
    (site_of(env) / "triton" / "backends").symlink_to(source)
    purged(env)
    assert snapshot(env) == before
    assert snapshot(source) == mine


@pytest.mark.parametrize(
    "entry",
    [
        "../../../../elsewhere/precious",
        "{outside}",
        "../../../..",
        "triton/../../../../../elsewhere/precious",
    ],
)
def test_a_recorded_file_outside_the_environment_is_refused_and_named(
    env: Path, tmp_path: Path, entry: str
) -> None:
    precious = tmp_path / "elsewhere" / "precious"
    put(tmp_path, {"elsewhere/precious": "precious"})
    text = entry.format(outside=precious)
    install(site_of(env), "triton", "3.5.0", {"triton/__init__.py": ""}, also_recorded=(text,))
    survey = purged(env)
    assert survey.refused == (site_of(env) / text,)
    assert precious.read_text() == "precious"
    assert not (site_of(env) / "triton").exists()
    assert [name for name in names(env) if "triton" in name] == []


ITSELF = {
    "pyvenv.cfg": "home = /usr/bin\n",
    "bin/python3.11": "#!/usr/bin/python\n# a wrapper",
    "bin/pip": "#!/x/python\n",
    "bin/activate": "#!/usr/bin/python\n",
    "bin/tool": "#!/bin/sh\nno Python's",
    "bin/program": "\x7fELF",
    "lib64/libpython.so": "",
    "include/python3.11/Python.h": "",
    "etc/some.conf": "",
}


@pytest.mark.parametrize("name", [*ITSELF, "bin/python", "bin/linked"])
def test_a_record_cannot_name_the_environment_itself(env: Path, name: str) -> None:
    put(env, ITSELF)
    for link in ("bin/python", "bin/linked"):
        (env / link).symlink_to(env / "bin" / "tool")
    before = snapshot(env)
    text = f"../../../{name}"
    triton(site_of(env))
    with (site_of(env) / "triton-3.5.0.dist-info" / "RECORD").open("a") as record:
        record.write(f"{text},,\n")
    survey = purged(env)
    assert survey.refused == (site_of(env) / text,)
    assert snapshot(env) == before


@pytest.mark.parametrize(
    "name", ["share/man/man1/proton.1", "include/site/python3.11/triton/x.h", "bin/other"]
)
def test_data_and_scripts_of_a_wheel_go(env: Path, name: str) -> None:
    put(env, {"pyvenv.cfg": ""})
    before = snapshot(env)
    triton(site_of(env))
    script = "#!/bin/sh\n'" + '\'\'exec\' "/a long path/python" "$0" "$@"\n'
    install(site_of(env), "triton", "3.5.0", {"triton/__init__.py": "", f"../../../{name}": script})
    put(env, {"bin/proton": "#!/usr/bin/python\n"})
    (env / "bin" / "proton").unlink()
    assert purged(env).refused == ()
    assert snapshot(env) == before


def test_without_its_own_record_pip_stays(env: Path) -> None:
    """Its files are nobody's then, and what is left could not be mended without it."""
    put(site_of(env), {"pip/__init__.py": "", "pip/_vendor/x.py": "", "pip-23.0.dist-info/METADATA": ""})
    before = snapshot(env)
    names_ = ("pip/__init__.py", "pip/_vendor/x.py", "pip-23.0.dist-info/METADATA", "pipes.py")
    install(site_of(env), "triton", "3.5.0", {"triton/__init__.py": "", "pipes.py": ""}, also_recorded=names_)
    survey = purged(env)
    assert [path.name for path in survey.refused] == ["__init__.py", "x.py", "METADATA"]
    assert snapshot(env) == before


@pytest.mark.parametrize("entry", [".", "..", "../site-packages", "../../python3.11/site-packages"])
def test_a_site_folder_that_is_a_link_stays(env: Path, entry: str) -> None:
    site = site_of(env)
    real = env / "lib" / "other" / "real"  # as deep, so that `../../../bin` is the same folder
    real.parent.mkdir()
    site.rename(real)
    site.symlink_to(real)
    before = snapshot(env)
    triton(site)
    with (site / "triton-3.5.0.dist-info" / "RECORD").open("a") as record:
        record.write(f"{entry},,\n")
    assert len(purged(env).refused) == 1
    assert snapshot(env) == before


def test_packages_outside_of_the_environment_are_not_passed_over_in_silence(
    env: Path, tmp_path: Path
) -> None:
    site = site_of(env)
    site.rename(tmp_path / "elsewhere")
    site.symlink_to(tmp_path / "elsewhere")
    assert purge.survey(python_of(env)).plan.steps == ()  # without a Triton there is nothing to say
    triton(site)
    before = snapshot(tmp_path / "elsewhere")
    with pytest.raises(OwnershipError, match="outside this environment; nothing was removed") as error:
        purge.survey(python_of(env))
    assert str(tmp_path / "elsewhere") in str(error.value)
    assert snapshot(tmp_path / "elsewhere") == before


def test_bytecode_of_an_editable_install_that_is_gone_goes(env: Path, tmp_path: Path) -> None:
    before = snapshot(env)
    editable(site_of(env), checkout(tmp_path / "src"), finder=True)
    name = "__editable___triton_3_6_0_finder"
    put(
        site_of(env),
        {f"__pycache__/{name}.cpython-311.pyc": "", f"__pycache__/{name}.cpython-311.opt-1.pyc": ""},
    )
    for path in (site_of(env) / "triton-3.6.0.dist-info").iterdir():
        path.unlink()
    (site_of(env) / "triton-3.6.0.dist-info").rmdir()
    purged(env)
    assert snapshot(env) == before


def test_an_environment_in_the_home_folder_keeps_to_its_site_folder(home: Path) -> None:
    triton(site_of(home))
    survey = purge.survey(python_of(home))
    assert survey.refused == (site_of(home) / "../../../bin/proton",)
    act(home / "x", survey.plan)
    assert not (site_of(home) / "triton").exists()
    assert (home / "bin" / "proton").exists()


def test_what_the_tool_noted_about_its_environment_goes(env: Path) -> None:
    """Or `invoke up` would think that its wheel is still there."""
    put(env, {".requirements.done": "key"})
    assert purge.survey(python_of(env)).plan.steps == ()
    triton(site_of(env))
    purged(env)
    assert not (env / ".requirements.done").exists()


def test_a_conda_package_is_named(env: Path) -> None:
    install(site_of(env), "triton", "3.5.0", {"triton/__init__.py": ""}, more={"INSTALLER": "conda\n"})
    assert "conda remove --force triton" in purge.survey(python_of(env)).notes[0]


# --- whose Python it is


@pytest.mark.parametrize("managed", [True, False])
def test_the_systems_python_is_refused_unless_told(env: Path, managed: bool) -> None:
    triton(site_of(env))
    python = python_of(env, base=True, managed=managed)
    with pytest.raises(OwnershipError, match="this is a system Python"):
        purge.recovery(python)
    with pytest.raises(OwnershipError, match="this is a system Python") as error:
        purge.survey(python)
    assert "--system" in str(error.value)
    assert ("package manager" in str(error.value)) is managed
    act(env, purge.survey(python, system=True).plan)
    assert not (site_of(env) / "triton").exists()


def both(env: Path, base: Path, *, system: bool) -> PythonEnv:
    one, other = python_of(env), python_of(base)
    return replace(
        one,
        base=system,
        path=(*one.path, *other.path),
        distributions=(*one.distributions, *other.distributions),
    )


def test_an_environment_that_sees_its_base_keeps_its_hands_off_it(env: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    triton(site_of(env))
    triton(site_of(base), version="3.4.0")
    before = snapshot(base)
    survey = purge.survey(both(env, base, system=False))
    act(env, survey.plan)
    assert snapshot(base) == before
    assert [row.title for row in survey.rows] == ["triton 3.5.0"]
    assert f"triton 3.4.0 in {site_of(base)} belongs to another interpreter" in survey.notes[0]
    assert purge.still_found(both(env, base, system=False)) == site_of(base) / "triton"


def test_the_systems_python_has_several_site_folders(env: Path, tmp_path: Path) -> None:
    """The users' own lies outside its prefix: each is emptied in one go of its own."""
    user = tmp_path / "user"
    triton(site_of(env))
    triton(site_of(user), version="3.4.0")
    plan = purge.survey(both(env, user, system=True), system=True).plan
    steps = [step for step in plan.steps if isinstance(step, Uninstall)]
    assert [step.root for step in steps] == [env, user]
    act(env, plan)
    assert not any("triton" in name for name in (*names(env), *names(user)))


# --- a run that was killed


def test_a_killed_run_is_healed_by_the_next(env: Path) -> None:
    before = snapshot(env)
    triton(site_of(env))
    whole = snapshot(env)
    (step,) = purge.survey(python_of(env)).plan.steps
    assert isinstance(step, Uninstall)
    step.stash.mkdir()
    paths = [step.journal.stashed(step.stash)[number] for number in (0, 1, 2)]
    put(step.stash, {"journal.json": json.dumps(asdict(step.journal), default=str)})
    for path, place in paths:
        path.rename(place)
    plan = purge.recovery(python_of(env))
    assert "was interrupted: restoring the files that it had moved" in plan.title
    with pytest.raises(SmithError, match="was interrupted") as error:
        purge.survey(python_of(env))
    assert "invoke purge-wheels --python" in str(error.value)
    act(env, plan)
    assert snapshot(env) == whole
    purged(env)
    assert snapshot(env) == before


def test_the_plan_can_be_pasted(env: Path) -> None:
    before = snapshot(env)
    triton(site_of(env), "triton", "3.5.0", **{'it\'s "quoted"': "x"})
    editable(site_of(env), checkout(env.parent / "src"), "triton", "3.6.0", finder=True)
    script = purge.survey(python_of(env)).plan.shell()
    subprocess.run(("/bin/sh", "-c", script), check=True)
    assert snapshot(env) == before
    assert not os.path.lexists(site_of(env) / "~tritonsmith-purge")
