"""What a report shows is what the run's database has."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fism_common.errors import ConfigError
from fism_server.algorithm.methods.fism import FismState
from fism_server.algorithm.record import Record
from fism_server.archive.events import Event
from fism_server.archive.snapshot import Reader, Stage
from fism_server.federation.notices import EventKind
from fism_server.federation.roster import Member
from fism_server.problem.plan import read_plan
from fism_server.report.downsample import thinned
from fism_server.report.page import as_json, report, write_report
from fism_server.report.sections import view_of
from fism_server.report.view import View, all_plots
from fism_server.run.job import new_job

from .folders import CONFIG, begun, finished

CSS = Path(__file__).parents[2] / "server/fism_server/report/page.css"


def section(view: View, name: str) -> list[list[str]]:
    """Return the rows of a section's first table."""
    return next(one for one in view.sections if one.id == name).tables[0].rows


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.integers(8, 400))
def test_thinned_curve_keeps_its_ends_and_extremes(values: list[float], most: int) -> None:
    """In order, each point once, no more than asked for."""
    numbers = np.array(values)
    kept = thinned(numbers, most)
    assert len(kept) <= max(most, 1)
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    assert numbers[kept].max() == numbers.max()
    assert numbers[kept].min() == numbers.min()


def test_numbers_are_those_of_the_database(tmp_path: Path) -> None:
    """F, H and the change of every round; the split of its time; the clients' medians; the held-out rows."""
    run = Reader(finished(tmp_path / "a", 3, 40)).read()
    view = view_of(run)
    plots = {plot.id: plot for plot in all_plots(view)}
    assert plots["inner"].series[0].values == [float(f"{100 + 900 / k:.7g}") for k in range(1, 41)]
    assert plots["change"].rounds == list(range(1, 41))
    assert plots["inner"].seconds[0] == 0, "F is that before the round"
    assert plots["inner"].seconds[-1] == pytest.approx(run.rounds["seconds"][:-1].sum(), rel=1e-6)
    whole = np.sum(np.array([one.values for one in plots["split"].series], float), axis=0)
    assert whole == pytest.approx(1e3 * run.rounds["seconds"], rel=1e-4)
    computed = [np.median(run.answers[f"site-{i:02}"][:, 0]) * 1e3 for i in range(3)]
    assert plots["clients"].series[0].values == pytest.approx(computed, rel=1e-6)
    assert plots["quality"].series[0].values == pytest.approx([90.0, 93.0, 94.0, 94.6])
    assert ("correct on held-out rows", "94.6%") in view.headline
    assert section(view, "clients")[0][:3] == ["site-00", "took part", "100"]
    assert section(view, "events")[0][2:] == ["lost", "site-00", "the connection <b>ended</b>"]


def test_largest_coefficients_have_their_names(tmp_path: Path) -> None:
    """In the order of their size, with both means beside the last."""
    names = [f"feature {i}" for i in range(30)]
    run = Reader(finished(tmp_path / "a", 2, 20, names=names)).read()
    assert run.state is not None
    rows = section(view_of(run), "model")
    order = np.argsort(-np.abs(run.state.x))[:20]
    assert [row[0] for row in rows] == [[*names, "intercept"][i] for i in order]
    assert [row[1] for row in rows] == [f"{run.state.x[i]:.6g}" for i in order]
    assert [row[2] for row in rows] == [f"{run.means['weighted'][i]:.6g}" for i in order]


def test_run_that_lost_a_client_is_told_with_all_its_rounds(tmp_path: Path) -> None:
    """Times of rounds before and after have different clients."""
    job = begun(tmp_path / "a", 3, 20)
    progress = FismState.at(21, np.zeros(12))
    first, gone, third = (Member(f"site-{i:02}", 100 + i, 12, 1, 12) for i in range(3))
    job.archive.drop([gone], progress.state(), Event(21, EventKind.DROPPED, "site-01", "absent"))
    record = Record(21, 1.0, 1.0, 90.0, 40.0, 0.1)
    progress.advance(record, np.ones(12))
    job.archive.add(record, 0.01, [first, third], [(0.001, 0.002), (0.003, 0.004)], progress.state)
    job.archive.save(progress.state())
    job.archive.close()
    run = Reader(job.out).read()
    assert run.stage is Stage.INTERRUPTED
    assert [len(run.answers[f"site-{i:02}"]) for i in range(3)] == [21, 20, 21]
    assert run.split[-1] == pytest.approx([0.003, 0.001, 0.006], rel=1e-4)
    view = view_of(run)
    assert [row[1] for row in section(view, "clients")] == ["took part", "dropped in round 21", "took part"]
    assert "--resume" in view.status


def test_finished_run_waits_for_nobody(tmp_path: Path) -> None:
    """Its report is written while its server still has the folder, with the last presence in the database."""
    job = begun(tmp_path / "a", 2, 5)
    job.archive.describe({"presence": {"present": ["site-00"], "waiting": {"site-01": 1.0}}})
    assert [row[1][:7] for row in section(view_of(Reader(job.out).read()), "clients")] == ["present", "awaited"]
    job.archive.describe({"stopped": "rounds", "inner": 1.0, "outer": 1.0})
    assert [row[1] for row in section(view_of(Reader(job.out).read()), "clients")] == ["took part", "took part"]
    job.archive.close()


def test_run_that_replaces_another_is_read_anew(tmp_path: Path) -> None:
    """In the same folder, while it is watched."""
    run = finished(tmp_path / "a", 2, 30)
    reader = Reader(run)
    assert len(reader.read().rounds["round"]) == 30
    shutil.rmtree(run)
    finished(tmp_path / "b", 3, 10).rename(run)
    again = reader.read()
    assert (len(again.rounds["round"]), len(again.clients)) == (10, 3)
    assert again.config is not None
    assert again.config.stop.rounds == 10


def test_looking_at_a_run_runs_no_code_of_its_folder(tmp_path: Path) -> None:
    """An objective of one's own is named, and not imported; a configuration that is none is told."""
    run = finished(tmp_path / "a", 2, 5)
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    file = run / "config.json"
    begun_with = json.loads(file.read_text())
    begun_with["folder"], begun_with["config"]["outer"] = str(tmp_path), {"kind": "trap:H"}
    file.write_text(json.dumps(begun_with))
    told = as_json(view_of(Reader(run).read()))
    assert "trap:H" in told
    assert not (tmp_path / "sprung").exists()
    for nonsense in ("[]", "{}", '{"config": {}}', "nonsense"):
        file.write_text(nonsense)
        assert "cannot read the configuration" in as_json(view_of(Reader(run).read()))


def test_run_that_waits_for_its_first_client_is_shown(tmp_path: Path) -> None:
    """Without a row, a round or a model."""
    config = tmp_path / "run.toml"
    config.write_text(CONFIG.format(clients=2, rounds=5, intercept="false"))
    job = new_job(read_plan(config), tmp_path / "run")
    view = view_of(Reader(job.out).read())
    assert view.status == "Waiting for clients: all of them."
    assert "2 clients will fit one model" in view.sections[0].text[0]
    job.archive.close()
    assert view_of(Reader(job.out).read()).stage == "interrupted"


def test_model_of_many_columns_shows_the_largest(tmp_path: Path) -> None:
    """A million of them, of which a few are not zero."""
    job = begun(tmp_path / "a", 1, 2)
    x = np.zeros(1_000_000)
    x[[5, 999_999]] = 1.0, -2.0
    job.archive.save(FismState(3, x, None, x.copy(), 1.0, x.copy(), 1, 1).state())
    rows = section(view_of(Reader(job.out).read()), "model")
    job.archive.close()
    assert [row[0] for row in rows[:2]] == ["column 999999", "column 5"]
    assert len(rows) == 20


def test_long_run_is_thinned_to_a_small_page(tmp_path: Path) -> None:
    """No curve has more than 1200 points, whatever the rounds; make browser has 100,000 of them."""
    view = view_of(Reader(finished(tmp_path / "a", 1, 3000)).read())
    assert 600 < max(len(plot.rounds) for plot in all_plots(view)) <= 1200
    assert len(as_json(view)) < 300_000


def test_problem_is_told_in_words(tmp_path: Path) -> None:
    """With every number of the configuration that decides it."""
    view = view_of(Reader(finished(tmp_path / "a", 3, 5)).read())
    told = " ".join(view.sections[0].text)
    assert "3 clients fit one model of 12 columns to 303 rows" in told
    assert "logistic losses" in told
    assert "entries from -10 to 10" in told
    assert "a sparse and small one" in told
    assert "l1 = 0.25, l2 = 1.5" in told


def test_report_of_a_run_without_its_configuration_does_without_h(tmp_path: Path) -> None:
    """A database that was given away tells nothing of H."""
    run = finished(tmp_path / "a", 2, 5)
    (run / "config.json").unlink()
    page = as_json(view_of(Reader(run).read()))
    assert "elastic-net" not in page
    assert "cannot read the configuration" in page


def test_report_is_for_its_owner_and_holds_no_markup_of_others(tmp_path: Path) -> None:
    """It tells what H is; names and texts of clients cannot end its script."""
    run = finished(tmp_path / "a", 1, 5, names=["</script><script>alert(1)</script>"])
    file = write_report(run)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "<script>alert" not in file.read_text(encoding="utf-8")
    assert "://" not in re.sub(r"(?s)<script>.*?</script>", "", report(view_of(Reader(run).read())))


def test_there_is_no_report_of_no_run(tmp_path: Path) -> None:
    """The folder is named."""
    with pytest.raises(ConfigError, match="there is no run in"):
        write_report(tmp_path)


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast_is_enough(scheme: int) -> None:
    """WCAG 2 AA: 4.5 for texts, 3 for lines and bars, on both grounds."""
    block = re.findall(r":root \{(.*?)\}", CSS.read_text(), re.DOTALL)[scheme]
    colours = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for text in ("text", "quiet", "accent", "good", "busy", "bad"):
        for ground in ("ground", "raised"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for line in ("one", "two", "three"):
        assert contrast(colours[line], colours["ground"]) >= 3, line
