"""Files are written as a whole or not at all."""

import os

import pytest

from torchpref.io.files.whole import written_whole


def test_a_failed_write_changes_nothing(tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), written_whole(target) as partial:
        partial.write_text("half")
        raise ZeroDivisionError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_permissions_stay_and_links_lead_on(tmp_path):
    target, link = tmp_path / "out.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with written_whole(link) as partial:
        partial.write_text("new")
    assert link.is_symlink()
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o640)
    assert len(os.listdir(tmp_path)) == 2


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    with written_whole(tmp_path / "new") as partial:
        partial.write_text("text")
    (tmp_path / "plain").write_text("text")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
