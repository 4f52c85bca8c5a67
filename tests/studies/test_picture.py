from itertools import combinations

from studies.peers.pareto import Point, pareto_picture

#: Close together, as the methods on MovieLens are.
POINTS = [
    *(Point(f"setting {k}", 2.0**k, 0.68 - 0.01 * k, ours=True) for k in range(5)),
    *(Point(f"a peer of ours, {k}", 1.5 + k, 0.66 + 0.002 * k) for k in range(8)),
]


def test_every_point_has_a_name_and_names_do_not_cover_each_other():
    figure = pareto_picture({"one": POINTS, "two": POINTS[:6]}, "MAE")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    for ax, n_points in zip(figure.axes, (13, 6), strict=True):
        names = [text for text in ax.texts if text.get_text()]
        assert len(names) == n_points
        boxes = [text.get_window_extent() for text in names]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_a_single_panel_without_peers_can_be_drawn(tmp_path):
    figure = pareto_picture({"alone": POINTS[:1]}, "MAE")
    figure.savefig(tmp_path / "alone.svg")
    assert (tmp_path / "alone.svg").stat().st_size > 0
