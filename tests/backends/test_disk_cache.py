"""What is wrong with the folder of compiled kernels costs time, and never more than that."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from numba import config

from marginmf.backends.cpu import compiling
from marginmf.backends.cpu.disk_cache import KernelCache, is_private


def double(number):
    return number + number


def compiled() -> Any:
    """Return a kernel as a new process would have it."""
    return compiling.kernel(double)


def was_read(kernel: Any) -> bool:
    """Run a kernel; whether it came from the disk."""
    assert kernel(21) == 42
    return bool(kernel.stats.cache_hits)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of one kernel."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kernels"))
    assert not was_read(compiled())
    found = Path(compiled().stats.cache_path)
    assert {file.suffix for file in found.iterdir()} == {".nbi", ".nbc"}
    return found


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No folder can be written to."""

    def refuse(*arguments: Any, **named: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGE = {
    "empty": lambda file: file.write_bytes(b""),
    "cut": cut,
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "text": lambda file: file.write_text("no pickle"),
    "another pickle": lambda file: file.write_bytes(b"\x80\x04N."),
    "code that is not there": lambda file: file.write_bytes(b"cmarginmf_nothing\nnothing\n."),
    "a folder": make_folder,
    "gone": Path.unlink,
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_compiled_anew_and_replaced(
    folder: Path, damage: str, suffix: str
) -> None:
    assert was_read(compiled())
    (file,) = folder.glob(f"*{suffix}")
    DAMAGE[damage](file)
    assert not was_read(compiled())
    if damage != "a folder":  # which no file can take the place of
        assert was_read(compiled())


def test_no_changed_byte_reaches_the_linker(folder: Path) -> None:
    (file,) = folder.glob("*.nbc")
    whole = file.read_bytes()
    kept = shutil.copytree(folder, folder.parent / "kept")
    for position in range(0, len(whole), len(whole) // 12):
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        changed = bytearray(whole)
        changed[position] ^= 0x10
        file.write_bytes(changed)
        assert not was_read(compiled()), position


def test_the_code_of_other_arguments_is_not_taken(folder: Path) -> None:
    other = compiled()
    assert other(0.25) == 0.5
    first, second = sorted(folder.glob("*.nbc"))
    second.write_bytes(first.read_bytes())
    again = compiled()
    assert again(0.25) == 0.5
    assert not again.stats.cache_hits


def test_a_kernel_that_cannot_be_written_is_compiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    shutil.rmtree(folder)
    assert not was_read(compiled())


def test_without_a_folder_kernels_are_compiled(nowhere: Path) -> None:
    kernel = compiled()
    assert not was_read(kernel)
    assert kernel.stats.cache_path is None


def test_a_folder_that_was_filled_before_is_read_though_it_cannot_be_written_to(
    folder: Path, nowhere: Path
) -> None:
    assert was_read(compiled())
    assert compiled().stats.cache_path == str(folder)


def test_a_numba_with_other_private_parts_still_keeps_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(self: KernelCache, function: Any) -> None:
        raise TypeError("another argument is missing")

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(KernelCache, "__init__", changed)
    assert [was_read(compiled()) for _ in range(2)] == [False, True]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the modes and owners of POSIX")
class TestPrivateFolders:
    """Who can write into the folder of kernels can run programs as us."""

    def test_a_folder_of_ones_own_is_private_and_so_is_one_that_will_be_made_there(
        self, tmp_path: Path
    ) -> None:
        assert is_private(str(tmp_path))
        assert is_private(str(tmp_path / "new" / "folder"))

    @pytest.mark.parametrize("where", [".", "inside"])
    def test_a_folder_that_all_can_write_to_is_not(self, tmp_path: Path, where: str) -> None:
        tmp_path.chmod(0o777)
        assert not is_private(str(tmp_path / where))

    def test_in_a_sticky_folder_it_is_ones_own_that_is_private(self, tmp_path: Path) -> None:
        own = tmp_path / "own"
        own.mkdir(0o700)
        tmp_path.chmod(0o1777)
        assert is_private(str(own))
        assert not is_private(str(tmp_path))

    def test_a_folder_of_another_user_is_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "planted").mkdir()
        if os.getuid() == 0:  # whose own folders all trust
            os.chown(tmp_path / "planted", 12345, -1)
        else:
            monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
        assert not is_private(str(tmp_path / "planted"))

    def test_a_link_is_as_private_as_where_it_is_and_where_it_leads(self, tmp_path: Path) -> None:
        own, shared = tmp_path / "own", tmp_path / "shared"
        own.mkdir(0o700)
        shared.mkdir()
        shared.chmod(0o777)
        (shared / "link").symlink_to(own)
        (own / "link").symlink_to(shared)
        assert not is_private(str(shared / "link" / "kernels"))
        assert not is_private(str(own / "link" / "kernels"))

    def test_a_name_without_a_home_is_not(self) -> None:
        assert not is_private("~/.cache/numba")

    def test_a_users_cache_folder_that_others_can_write_to_is_left_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sources, home = tmp_path / "sources", tmp_path / "home"
        home.mkdir()
        sources.mkdir()
        # As if beside the sources nothing could be written.
        (sources / "__pycache__").write_text("")
        (sources / "own.py").write_text("def double(x):\n    return x + x\n")
        names: dict[str, Any] = {}
        exec(compile((sources / "own.py").read_text(), sources / "own.py", "exec"), names)
        monkeypatch.setattr(config, "CACHE_DIR", "")
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        monkeypatch.setattr("sys.platform", "linux")
        kernel = compiling.kernel(names["double"])
        assert kernel.stats.cache_path.startswith(str(home))
        home.chmod(0o777)
        kernel = compiling.kernel(names["double"])
        assert kernel.stats.cache_path is None
