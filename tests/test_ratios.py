"""The data of the report's picture: every ratio with what it is of and from, relative to every choice of baseline."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import explored
import pandas as pd
import pytest
from benchlib.suite.experiments.report import Report

from benchlib import tables
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.plotting import style
from benchlib.report import forest, forest_figure, ratios
from benchlib.report.ratios import Group, Member, Ratio
from benchlib.stats import frame as tidy
from benchlib.stats.intervals import Interval
from benchlib.suite import trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    explored.results(folder)
    return folder


@pytest.fixture(scope="module")
def groups(folder: Path) -> list[Group]:
    return ratios.groups(Report(Lab(outputs=folder)))


def test_each_comparison_is_a_group_with_its_baseline_first(groups: list[Group]) -> None:
    assert [[one.label for one in group.members] for group in groups] == [
        [str(one) for one in compared] for compared in explored.COMPARED
    ]
    assert [group.workload for group in groups] == ["cnn", "cnn", "gcn"]
    assert {group.title for group in groups} == {"Modes"}


def test_the_ratios_are_the_rows_of_the_frame_for_every_baseline(folder: Path, groups: list[Group]) -> None:
    frame = tidy.load(folder / "tables" / "modes_frame.parquet")
    rows = frame[frame["quantity"].isin(["throughput_ratio", "pair_ratio"])]
    by_pair = {(row["part"], row["baseline_label"], row["label"]): row for row in rows.to_dict("records")}
    shown = 0
    for part, group in enumerate(groups):
        for baseline in range(len(group.members)):
            others = group.relative_to(baseline)
            assert set(others) == set(range(len(group.members))) - {baseline}
            for place, ratio in others.items():
                row = by_pair[part, group.members[baseline].label, group.members[place].label]
                assert (ratio.interval.estimate, ratio.interval.low, ratio.interval.high) == (
                    row["estimate"],
                    row["low"],
                    row["high"],
                )
                assert (ratio.interval.processes, ratio.verdict) == (row["processes"], row["verdict"])
                assert " ".join(ratio.files) == row["files"]
                shown += 1
    assert shown == len(rows) == 6 + 2 + 2


def test_a_member_says_what_it_is_and_what_it_was_measured_with(groups: list[Group]) -> None:
    torch, graph, mindspore = groups[0].members
    assert groups[0].setting == f"batch {explored.TORCH.batch_size}"
    assert [groups[0].apart(place) for place in range(3)] == [""] * 3
    assert groups[2].setting == "batch 1"
    assert mindspore.choices == {
        **{"framework": "mindspore", "environment": "default", "workload": "cnn", "mode": "graph", "device": "cpu"},
        **{"batch_size": str(explored.TORCH.batch_size), "lane": "tuned", "precision": "fp32"},
    }
    assert mindspore.versions == "mindspore 1.0"
    assert "MALLOC_MMAP_THRESHOLD_=" in torch.knobs
    assert "{scratch}" not in torch.knobs
    assert groups[0].machine.startswith("2 cores of synthetic, 8 GiB")
    assert graph.look.color != mindspore.look.color
    assert graph.look == style.subject_look("pytorch", "default", "graph", "fp32", "tuned")


def test_an_environment_called_like_its_framework_is_named_and_drawn_as_in_figures(tmp_path: Path) -> None:
    jax = explored.GRAPH.but(framework="jax", environment="jax")
    explored.results(tmp_path, [[explored.TORCH, jax]])
    (group,) = ratios.groups(Report(Lab(outputs=tmp_path)))
    assert [one.subject for one in group.members] == ["pytorch eager tuned", "jax graph tuned"]
    assert group.members[1].look == style.subject_look("jax", "default", "graph", "fp32", "tuned")
    assert group.members[1].choices["environment"] == "jax", "by which it is looked for"


def test_a_key_leads_to_the_measurements_of_a_ratio(folder: Path, groups: list[Group]) -> None:
    Report(Lab(outputs=folder)).show_first_page()
    (ratio,) = (one for one in groups[2].ratios if one.to == 1)
    (number,), _ = trace.numbers(folder / "tables" / "report_ratios.csv", folder, ratio.key)
    assert number.keys == ratio.files
    assert f"{ratio.interval.estimate:.6g}" in number.says
    assert len({one.key for group in groups for one in group.ratios}) == 10


def test_the_json_has_all_of_it(groups: list[Group]) -> None:
    data = json.loads(ratios.as_json(groups))
    texts = data["texts"]
    group = data["groups"][0]
    assert [texts[member[1]] for member in group["members"]] == [one.subject for one in groups[0].members]
    by_pair = {(of, to): rest for of, to, *rest in group["ratios"]}
    ratio = next(one for one in groups[0].ratios if (one.of, one.to) == (2, 1))
    estimate, low, high, processes, kind, verdict, text, key, files, _ = by_pair[2, 1]
    assert (estimate, low, high) == pytest.approx(
        (ratio.interval.estimate, ratio.interval.low, ratio.interval.high), rel=1e-4
    )
    assert (processes, texts[kind], texts[verdict], key) == (5, "slower", "slower", ratio.key)
    assert text == tables.ratio(ratio.interval.estimate, ratio.interval.low, ratio.interval.high)
    assert files.split() == list(ratio.files)
    assert data["filters"] == list(ratios.FILTERS)


def ratio(estimate: float, low: float = math.nan, high: float = math.nan, verdict: str = "faster") -> Ratio:
    return Ratio(1, 0, Interval(estimate, low, high, 3), verdict, "", ("a1",), "k1")


def group(*every: Ratio, control: Interval | None = None, names: tuple[str, ...] = ("pytorch", "mindspore")) -> Group:
    choices = [dict.fromkeys(ratios.FILTERS, "") | {"framework": name} for name in names]
    details = (("batch 4", False), ("all threads", True))
    members = [
        Member(
            f"cnn {name}", f"{name} eager", details, one, style.subject_look(name, "default", "eager", "fp32", "tuned")
        )
        for name, one in zip(names, choices, strict=True)
    ]
    control = control or Interval(1.0, 0.98, 1.02, 3)
    return Group("modes", "Modes", "cnn on digits", "cnn", 0.05, control, "", "", members, list(every))


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (ratio(2, 1.9, 2.1), "faster"),
        (ratio(0.5, 0.4, 0.6, "slower"), "slower"),
        (ratio(1, 0.9, 1.2, "no difference shown"), "open"),
        (ratio(1, 0.99, 1.01, "the same within 5 %"), "same"),
        (ratio(math.nan, verdict="models differ"), "none"),
    ],
)
def test_what_a_ratio_shows_is_its_row_s_kind(one: Ratio, kind: str) -> None:
    shown = forest.picture([group(one)])
    (row,) = [part for part in shown.split("<tr ") if 'data-member="1"' in part]
    assert one.kind == kind
    assert row.startswith(f'class="{kind}"')
    assert ('href="#mark-' in row.split("<td>")[1]) is (kind != "none"), "no mark without a ratio"
    assert f'href="#glyph-{kind}"' in row
    assert one.verdict in row


def test_every_marker_of_a_look_is_drawn_on_the_page() -> None:
    assert set(style._MARKERS) == set(forest.MARKS)


def test_the_lane_of_most_is_marked_for_pages_without_room(groups: list[Group]) -> None:
    assert '<span class="unsaid">tuned</span>' in forest.picture(groups)
    assert '<span class="for-many">where no lane is named: tuned</span>' in forest.legend(groups)
    one = groups[0].members[-1]
    other = replace(one, subject="pytorch eager default", choices={**one.choices, "lane": "default"})
    mixed = [replace(groups[0], members=[*groups[0].members[:-1], other]), *groups[1:]]
    assert "pytorch eager default <small>" in forest.picture(mixed)
    assert forest.picture(mixed).count("unsaid") == forest.picture(groups).count("unsaid") - 1


def test_the_axis_has_one_all_points_and_the_margins_and_lets_far_ends_run_out() -> None:
    axis = forest.axis_of([ratio(2, 0.001, 40), ratio(0.5, 0.45, 0.55)], {0.05})
    assert axis.percent(0.5) > 0
    assert axis.percent(2) < 100
    assert axis.low > 0.001
    assert axis.percent(0.001) == 0
    assert 1.0 in axis.ticks
    assert 3 <= len(axis.ticks) <= 7
    drawn = forest.strip(ratio(2, 0.001, 40), group(), group().members[1].look, axis)
    assert "#arrow-left" in drawn
    assert "#arrow-right" in drawn
    narrow = forest.axis_of([ratio(1.01, 1.0, 1.02)], {0.05})
    assert narrow.low < 0.95
    assert narrow.high > 1.05
    assert len(narrow.ticks) >= 3
    gaps = [narrow.percent(b) - narrow.percent(a) for a, b in itertools.pairwise(narrow.ticks)]
    assert min(gaps) >= forest.APART, "that can be read"


def test_an_a_a_that_excludes_one_is_hatched_and_said() -> None:
    restless = group(ratio(2, 1.9, 2.1), control=Interval(1.1, 1.05, 1.15, 3))
    assert 'class="control restless"' in forest.picture([restless])
    assert "A/A excludes 1" in forest.legend([restless])
    quiet = group(ratio(2, 1.9, 2.1))
    assert "restless" not in forest.picture([quiet])
    assert "A/A excludes 1" not in forest.legend([quiet])


def test_what_is_compared_with_something_else_than_usual_says_so() -> None:
    one = Member("a", "pytorch eager", (("batch 4", False), ("1 thread", False)), {}, style.looks(["a"])["a"])
    other = Member("b", "jax graph", (("batch 4", False), ("all threads", True)), {}, style.looks(["a"])["a"])
    assert forest.versus(one, other, "pytorch eager") == "jax graph, all threads"
    assert forest.versus(one, one, "pytorch eager") == ""


def test_what_comparisons_have_in_common_is_said_once() -> None:
    one = group(ratio(2))
    other = replace(one, members=[replace(member, details=(("batch 8", False),)) for member in one.members])
    assert forest.headings("on digits", [one, one]) == ("on digits, batch 4 · Modes", ["", ""])
    assert forest.headings("", [one, other]) == ("Modes", ["batch 4", "batch 8"])
    titled = replace(other, title="Frameworks")
    assert forest.headings("on digits", [one, titled]) == ("on digits", ["batch 4 · Modes", "batch 8 · Frameworks"])
    assert forest.headings("", [one, replace(one, title="Frameworks")]) == ("batch 4", ["Modes", "Frameworks"])
    shown = forest.picture([one, other])
    assert re.findall(r'<th scope="rowgroup" colspan="4">(.*?)</th>', shown) == ["batch 4", "batch 8"]
    assert shown.count("<tbody>") == 2
    assert "rowgroup" not in forest.picture([one, one])


def test_what_two_notebooks_have_is_shown_once_and_found_by_either_key(tmp_path: Path) -> None:
    for notebook in ("modes", "frameworks"):
        explored.results(tmp_path, explored.COMPARED[: 1 + (notebook == "modes")], notebook, title=notebook)
    report = Report(Lab(outputs=tmp_path))
    of_notebooks = ratios.groups(report)
    shown = ratios.once(of_notebooks)
    assert sorted(one.title for one in of_notebooks) == ["frameworks", "modes", "modes"]
    assert sorted(one.title for one in shown) == ["frameworks; modes", "modes"]
    page = report.show_first_page().data
    assert "mindspore against pytorch, 2 ratios" in page
    assert page.count('scope="row"') == sum(len(one.members) for one in shown)
    assert page.count("frameworks; modes") >= 1
    for group in of_notebooks:
        for one in group.ratios:
            (number,), _ = trace.numbers(tmp_path / "tables" / "report_ratios.csv", tmp_path, one.key)
            assert number.keys == one.files
    margins = [replace(one, margin=0.01 * place) for place, one in enumerate(of_notebooks)]
    assert len(ratios.once(margins)) == 3, "what differs in what it shows is no repetition"


def test_without_ratios_it_is_said(tmp_path: Path) -> None:
    shown = Report(Lab(outputs=tmp_path)).show_first_page().data
    assert "No ratio of throughput has been measured yet." in shown
    assert "The claims have not been judged yet." in shown
    assert "No ratio between frameworks has been measured yet." in shown


def test_text_of_measurements_cannot_end_the_data_element() -> None:
    evil = group(ratio(2, 1.9, 2.1, "faster"), names=("pytorch", "</script><b>"))
    shown = forest.picture([evil])
    assert "</script><b>" not in shown
    assert shown.count("</script>") == 1


def test_threads_and_knobs_that_differ_tell_members_apart(tmp_path: Path) -> None:
    base = Condition(workload="cnn", lane="tuned", hyperparameters={"image_size": 8})
    explored.results(tmp_path, [[base, base.but(threads=1), base.but(learning_rate=0.5)]])
    (group,) = ratios.groups(Report(Lab(outputs=tmp_path)))
    one, two, _ = group.members
    assert group.setting == f"batch {base.batch_size}"
    apart = ["learning rate 0.01", "1 thread, learning rate 0.01", "learning rate 0.5"]
    assert [group.apart(place) for place in range(3)] == apart, "all threads go without saying"
    assert forest.versus(two, one, one.subject) == "all threads"


def test_the_table_has_a_row_for_each_ratio(groups: list[Group]) -> None:
    frame = ratios.table(groups)
    assert len(frame) == 10
    assert pd.api.types.is_float_dtype(frame["ratio"])
    assert frame["measurements"].str.split().map(len).tolist() == [5] * 10


def test_the_figure_for_a_paper_has_a_row_for_each_ratio_and_leads_to_its_measurements(folder: Path) -> None:
    report = Report(Lab(outputs=folder))
    axes = forest_figure.draw(ratios.groups(report)).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    batches = [f"batch {one[0].batch_size}" for one in explored.COMPARED]
    graph, mindspore = explored.GRAPH.subject, explored.MINDSPORE.subject
    cnn = ["cnn · Modes", batches[0], graph, mindspore, batches[1], mindspore]
    assert labels == [*cnn, f"gcn, {batches[2]} · Modes", mindspore]
    points = [tuple(line.get_data()) for line in axes.lines if len(line.get_xdata()) == 1]
    shown = [one for group in ratios.groups(report) for one in group.relative_to(0).values()]
    assert [at[0][0] for at in points] == [one.interval.estimate for one in shown]
    ticks = list(axes.get_yticks())
    assert [ticks.index(at[1][0]) for at in points] == [2, 3, 5, 7], "each beside its label"
    report.show_first_page()
    (number,), _ = trace.numbers(folder / "figures" / "report_ratios.svg", folder)
    assert set(number.keys) == {key for group in ratios.groups(report) for one in group.ratios for key in one.files}


@pytest.mark.parametrize(("processes", "communication", "told"), [(1, None, None), (2, None, True), (2, False, False)])
def test_only_several_processes_have_gradients_to_exchange(
    processes: int, communication: bool | None, told: bool | None
) -> None:
    chosen = {"batch_size": 1, "data": "digits", "device": "cpu", "threads": 1, "train_samples": None, "without": None}
    chosen |= {"world_size": processes, "communication": communication, "learning_rate": None, "hyperparameters": "{}"}
    said = {name: text for name, text, _ in ratios._details(chosen)}
    expected = {None: None, True: "with exchange", False: "without exchange"}[told]
    assert said.get("communication") == expected
