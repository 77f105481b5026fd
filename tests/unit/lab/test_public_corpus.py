"""A recipe of public kernels: what is read of it, what of a capture is kept, and what is told."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.compiler import capture
from tritonsmith.compiler.capture import Captured, PreparedCapture, Recording
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.core import configs
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import ConfigError, FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import Download, Extract, UnpackPackage
from tritonsmith.lab import public_corpus
from tritonsmith.lab.corpus import Corpus, CorpusChange
from tritonsmith.lab.public_corpus import PackageResult, PublicPackage, SourceArchive, UnpackedRequirements

ONE, TWO = "1" * 64, "2" * 64
RECIPE = """
device = "h100"
python = "3.11"
platforms = ["manylinux_2_28_x86_64"]
most = 2

[[package]]
name = "norms"
version = "1.2"
license = "MIT"
sha256 = ["ONE", "TWO"]
drivers = ["norms_driver.py", "more_driver.py"]
needs = ["einops==0.8.1"]
stand-ins = ["norms_cuda"]

[[package]]
name = "other"
version = "3"
license = "Apache-2.0"
sha256 = ["TWO"]
drivers = ["norms_driver.py"]
source = "https://example.org/other-3.tar.gz"
""".replace("ONE", ONE).replace("TWO", TWO)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    for name in ("norms", "more"):
        (tmp_path / f"{name}_driver.py").write_text("")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path / "recipe.toml"


def test_a_recipe_is_read_and_its_packages_are_chosen_by_name(recipe: Path) -> None:
    read = public_corpus.read(recipe)
    norms, other = read.package
    assert (read.device, read.most, norms.stand_ins, norms.generated) == ("h100", 2, ("norms_cuda",), False)
    assert norms.requirement == f"norms==1.2 --hash=sha256:{ONE} --hash=sha256:{TWO}"
    assert public_corpus.choose(read, ()) == read.package
    assert public_corpus.choose(read, ["other", "other"]) == (other,)
    with pytest.raises(UsageError, match="the recipe has no package 'norm'") as caught:
        public_corpus.choose(read, ["norm"])
    assert "norms" in caught.value.hints[0]


@pytest.mark.parametrize(
    ("old", "new", "what", "why"),
    [
        ("stand-ins", "standins", "this is not a recipe of a corpus", "norms has an unknown key: standins"),
        ('device = "h100"', "", "this is not a recipe of a corpus", "the recipe has no device"),
        ('version = "1.2"', "version = 1.2", "this is not a recipe of a corpus", "version cannot be 1.2"),
        (
            'version = "1.2"',
            'version = "1.2"\nloads = ["../x"]',
            "norms of this recipe",
            "is not a pattern",
        ),
        ("[[package]]", "[package]", "this is not a recipe of a corpus", ""),
        ('"more_driver.py"', '"no.py"', "a driver of norms is missing", ""),
        ("most = 2", "most = 0", "`most` and `seconds` of a recipe are at least 1", ""),
        (ONE, "d2a8...", "norms of this recipe cannot be right", "'d2a8...' is none"),
        (f'["{ONE}", "{TWO}"]', "[]", "norms of this recipe cannot be right", "are missing"),
        (f'sha256 = ["{TWO}"]', f'sha256 = ["{TWO}", "{ONE}"]', "other of this recipe", "here are 2 hashes"),
        (
            'version = "3"',
            'version = "4"',
            "other of this recipe",
            "other-3.tar.gz is not the archive of other 4",
        ),
    ],
)
def test_a_wrong_recipe_is_refused(recipe: Path, old: str, new: str, what: str, why: str) -> None:
    recipe.write_text(RECIPE.replace(old, new))
    with pytest.raises(ConfigError, match=what) as caught:
        public_corpus.read(recipe)
    assert why in (caught.value.why or "")


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read this recipe"):
        public_corpus.read(tmp_path / "no.toml")


def test_packages_are_unpacked_once_with_their_hashes() -> None:
    space = workspace.default()
    packages = UnpackedRequirements("norms", ("norms==1.2 --hash=sha256:12",), ("--only-binary=:all:",))
    write, unpack = packages.steps(space, Path("/python"))
    assert isinstance(unpack, UnpackPackage)
    assert unpack.requirement == f"--requirement={write.path}"  # type: ignore[attr-defined]
    assert {"--no-deps", "--only-binary=:all:"} < set(unpack.pip)
    assert UnpackedRequirements("norms", ("norms==1.3",), ()).folder(space) != packages.folder(space)
    packages.folder(space).mkdir(parents=True)
    assert packages.steps(space, Path("/python")) == ()


def test_a_few_specializations_of_each_function_are_kept(tmp_path: Path) -> None:
    rows = [
        {
            "name": f"{kernel}-{number}",
            "file": "k.py",
            "kernel": kernel,
            "signature": f"*fp32,{number}",
            "targets": ["h100"],
            "where": ["driver.py:3"],
        }
        for kernel, count in (("a", 7), ("b", 2))
        for number in range(count)
    ]
    (tmp_path / "captured.toml").write_text(kernel_list.render_kernels(rows))
    short = tmp_path / "short.toml"
    short.write_text(public_corpus._shortened(kernel_list.read(tmp_path / "captured.toml"), 3))
    entries = kernel_list.read(short)
    assert [entry.name for entry in entries] == ["a-0", "a-3", "a-6", "b-0", "b-1"]
    assert not any(entry.targets or entry.launched_from for entry in entries)


def test_what_is_told_of_a_package(recipe: Path) -> None:
    package = public_corpus.read(recipe).package[0]
    changes = (CorpusChange("a", "new"), CorpusChange("b", "new"), CorpusChange("c", "not added", "why"))
    result = PackageResult(package, "more_driver.py", changes, ("rope: RuntimeError: no",), ("a",))
    assert list(public_corpus.lines(result)) == [
        "norms (more_driver.py) 1.2 (MIT): 2 new, 1 not added",
        "  the source of 1 kernel changed since the capture (a); --record captures anew",
        "  not added: c: why",
        "  not reached: rope: RuntimeError: no",
    ]
    lost = PackageResult(package, error=SmithError("cannot unpack it"))
    assert list(public_corpus.lines(lost)) == ["norms 1.2 (MIT): cannot unpack it"]


def test_a_source_archive_is_unpacked_and_not_built(recipe: Path) -> None:
    space = workspace.default()
    other = public_corpus.read(recipe).package[1]
    archive = SourceArchive(other)
    download, extract = archive.steps(space, Path("/python"))
    assert isinstance(download, Download)
    assert isinstance(extract, Extract)
    assert (download.url, download.sha256) == ("https://example.org/other-3.tar.gz", TWO)
    assert (extract.archive, extract.dest) == (download.dest, archive.folder(space))


KERNEL = "import triton\n\n@triton.jit\ndef {name}(p, N):\n    p\n"
CAPTURED = """
[[kernel]]
file = "norms/{name}.py"
kernel = "{name}"
module = "norms.{name}"
signature = "*fp32,64"
"""


class Drivers:
    """Packages that are unpacked, and drivers that end as each is told to."""

    def __init__(self, path: Path, space: workspace.Workspace, patch: pytest.MonkeyPatch) -> None:
        self.ends: dict[str, int | SmithError] = {}
        self.ran: list[str] = []
        self.more = ""
        self.path, self.space, self.corpus = path, space, Corpus(path.parent / "corpus")
        self.recipe = public_corpus.read(path)
        self.norms = replace(self.recipe.package[0], needs=())
        place = UnpackedRequirements("norms", (self.norms.requirement,), ()).folder(space) / "norms"
        place.mkdir(parents=True)
        for name in ("norms", "more"):
            (place / f"{name}.py").write_text(KERNEL.format(name=name))
            listed = path.parent / public_corpus.CAPTURED / f"{name}.toml"
            listed.parent.mkdir(exist_ok=True)
            listed.write_text(CAPTURED.format(name=name))
        patch.setattr(capture, "execute", self._execute)

    def _execute(self, prepared: PreparedCapture, *_: object, **__: object) -> Captured:
        driver = Path(prepared.step.argv[-1]).name
        self.ran.append(driver)
        end = self.ends.get(driver, 0)
        if isinstance(end, SmithError):
            raise end
        text = CAPTURED.format(name=driver.removesuffix("_driver.py"))
        prepared.out.write_text(text + self.more)
        return Captured(Recording(), ({},), end, "", "RuntimeError: no", "not reached: rope: no\nother\n")

    def make(self, *packages: PublicPackage, record: bool = True) -> list[PackageResult]:
        return list(
            public_corpus.make(
                self.recipe,
                self.path,
                packages or (self.norms,),
                self.corpus,
                lambda: Path(sys.executable),
                self.space,
                record=record,
            )
        )


@pytest.fixture
def drivers(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> Drivers:
    space = workspace.default()
    space.claim()
    return Drivers(recipe, space, monkeypatch)


def test_drivers_run_only_to_record(drivers: Drivers) -> None:
    first, second = drivers.make(record=False)
    assert [change.name for change in (*first.changes, *second.changes)] == ["norms", "more"]
    assert drivers.ran == []
    assert drivers.make()[0].not_reached == ("rope: no",)
    assert drivers.ran == ["norms_driver.py", "more_driver.py"]


def test_kernels_of_no_file_of_the_package_are_left_out_by_name(drivers: Drivers) -> None:
    drivers.more = "".join(
        CAPTURED.format(name=name).replace(f"norms/{name}.py", file)
        for name, file in (
            ("made", "norms_driver.sources/made.py"),
            ("torch", "../torch/a.py"),
            ("c", "/c.py"),
        )
    )
    first, _ = drivers.make()
    assert [change.name for change in first.changes] == ["norms"]
    assert first.not_reached[1:] == tuple(
        f"{name}: not in a file of the package" for name in ("made", "torch", "c")
    )


@pytest.mark.parametrize(
    ("end", "what"),
    [(134, "the driver ended with exit code 134"), (SmithError("it did not end"), "it did not end")],
)
def test_a_driver_that_fails_costs_itself_only(drivers: Drivers, end: int | SmithError, what: str) -> None:
    drivers.ends["norms_driver.py"] = end
    listed = drivers.path.parent / public_corpus.CAPTURED / "norms.toml"
    before = listed.read_text()
    first, second = drivers.make()
    assert (str(first.error.what) if first.error else "", first.title) == (what, "norms (norms_driver.py)")
    assert [change.state for change in second.changes] == ["new"]
    assert listed.read_text() == before
    assert listed.with_name("more.toml").read_text() != before


def test_an_interrupted_driver_ends_the_run(drivers: Drivers) -> None:
    drivers.ends["norms_driver.py"] = 130
    with pytest.raises(InterruptedRunError, match="interrupted"):
        drivers.make()
    assert drivers.ran == ["norms_driver.py"]


def test_a_package_without_an_interpreter_costs_itself_only(drivers: Drivers) -> None:
    generated = replace(drivers.norms, name="torch", sha256=(), generated=True)

    def no_python() -> Path:
        raise FactError("no Python interpreter")

    lost, first, _ = public_corpus.make(
        drivers.recipe,
        drivers.path,
        (generated, drivers.norms),
        drivers.corpus,
        no_python,
        drivers.space,
        record=False,
    )
    assert (lost.title, str(lost.error.what) if lost.error else "") == ("torch", "no Python interpreter")
    assert [change.state for change in first.changes] == ["new"]


def test_what_a_package_generates_is_listed_by_its_driver_alone(drivers: Drivers) -> None:
    generated = replace(drivers.norms, name="torch", sha256=(), generated=True, drivers=("norms_driver.py",))
    folder = UnpackedRequirements("torch", (), ()).folder(drivers.space) / "norms"
    folder.mkdir(parents=True)
    (folder / "norms.py").write_text(KERNEL.format(name="norms"))
    (result,) = drivers.make(generated, record=False)
    assert [change.state for change in result.changes] == ["new"]
    assert drivers.ran == ["norms_driver.py"]


def test_another_version_shows_which_kernels_changed(drivers: Drivers) -> None:
    drivers.make(record=False)
    folder = drivers.space.toolchain / "corpus"
    (place,) = folder.glob("norms-*")
    newer = replace(drivers.norms, version="1.3")
    other = UnpackedRequirements("norms", (newer.requirement,), ()).folder(drivers.space)
    place.rename(other)
    (other / "norms" / "more.py").write_text(KERNEL.format(name="more").replace("    p\n", "    N\n"))
    first, second = drivers.make(newer, record=False)
    assert [change.state for change in (*first.changes, *second.changes)] == ["same", "changed"]


def test_the_recipe_that_ships_has_a_list_of_kernels_for_each_package() -> None:
    path = public_corpus.shipped()
    recipe = public_corpus.read(path)
    table = (Path(__file__).parents[3] / "docs" / "compare.md").read_text(encoding="utf-8")
    kernels = entries = 0
    for package in recipe.package:
        assert all(len(value) == 64 for value in package.sha256)
        own: list[kernel_list.ListedKernel] = []
        for driver in () if package.generated else package.drivers:
            stem = Path(driver).stem.removesuffix("_driver")
            # `python DRIVER` must import the package: its folder comes first, and has no such module.
            assert stem != Path(driver).stem
            own += kernel_list.read(path.parent / public_corpus.CAPTURED / f"{stem}.toml")
        assert all(map(public_corpus._is_own, own))
        functions = {(entry.file, entry.kernel) for entry in own}
        kernels += len(functions)
        entries += len(own)
        row = f"| {package.name} {package.version} | {package.license} | {len(functions)} | {len(own)} |"
        assert package.generated or row in table
    assert len(recipe.package) >= 12
    assert kernels >= 500
    assert entries >= 1500
    assert configs.data_dir("configs") in path.parents
