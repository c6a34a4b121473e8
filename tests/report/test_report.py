"""The report: what it shows is what the functions return, it needs nothing from outside, and it
works in a real browser."""

import json
import os
import re
import stat
import tracemalloc
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse
import sparse

import pglp_fast as pf
from browser import Browser, find_chromium
from pglp_fast.report import charts, limits, picture, sections, trails
from pglp_fast.report.balance import ESTIMATORS
from pglp_fast.report.measures import cumulative, over_time

ROWS, COLS, USERS, STEPS = 9, 9, 5, 8
VOID = {"meta", "input", "br", "hr", "link", "img"}
NASTY = 'Tom & "Ann" </script><script>window.hacked=1</script><!-- {{css}} \' \u2028 \U0001f600'


def walks(grid, users, steps, seed):
    rng = np.random.default_rng(seed)
    cells = [rng.integers(0, grid.size, users)]
    for _ in range(steps - 1):
        row, col = cells[-1] // grid.cols, cells[-1] % grid.cols
        row = np.clip(row + rng.integers(-1, 2, users), 0, grid.rows - 1)
        col = np.clip(col + rng.integers(-1, 2, users), 0, grid.cols - 1)
        cells.append(row * grid.cols + col)
    return np.stack(cells, axis=1)


def lazy_walk(grid):
    """Any of the eight cells around, or to stay: evenly."""
    near = pf.neighbours8(grid)
    matrix = scipy.sparse.csr_array(
        (np.ones(len(near.indices)), near.indices, near.indptr)
    ) + scipy.sparse.eye_array(grid.size)
    return pf.MobilityModel(grid, scipy.sparse.csr_array(matrix / matrix.sum(axis=1)[:, None]))


@pytest.fixture(scope="module")
def city():
    grid = pf.Grid(ROWS, COLS, cell_km=0.5, origin=(35.0, 139.0))
    truth = walks(grid, USERS, STEPS, 1)
    truth[1, 3] = truth[2, 0] = -1
    releaser = pf.TraceReleaser(
        pf.blocks(grid, 3), lazy_walk(grid), epsilon=0.7, rng=987654321, budget=20
    )
    return grid, truth, releaser, releaser.run(truth, evidence=True)


@pytest.fixture(scope="module")
def written(city, tmp_path_factory):
    """A report with true locations, read as text and as data."""
    _, truth, releaser, result = city
    path = tmp_path_factory.mktemp("report") / "report.html"
    labels = [NASTY, *(f"user {k}" for k in range(1, USERS))]
    assert (
        pf.write_report(
            path,
            releaser,
            result,
            truth,
            title=NASTY,
            labels=labels,
            times=[f"t<{k}>" for k in range(STEPS)],
        )
        == path
    )
    return path, path.read_text("utf-8")


def data_of(text):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]
    )


def cells_of(runs):
    return [
        cell
        for first, count in zip(runs[::2], runs[1::2], strict=True)
        for cell in range(first, first + count)
    ]


class Strict(HTMLParser):
    """Every element is closed in the order it was opened; collects attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.ids, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.ids += [v for k, v in attrs if k == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, text):
        if not {"script", "style"} & set(self.open):
            self.text.append(text)


def all_reports(city, folder):
    """One of each kind."""
    grid, truth, releaser, result = city
    m = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0)
    yield pf.write_report(folder / "a.html", releaser, result, truth)
    yield pf.write_report(folder / "b.html", releaser, result)
    yield pf.write_report(folder / "c.html", m)
    yield pf.write_report(
        folder / "d.html", m, m.release(truth[truth >= 0], rng=1), truth[truth >= 0]
    )
    yield pf.write_report(folder / "e.html", m, m.release(truth[truth >= 0], rng=1))


def test_every_kind_is_well_formed_and_self_contained(city, tmp_path):
    """Would catch an unclosed element, an id used twice, a label of nothing, and anything that
    is fetched from elsewhere."""
    for path in all_reports(city, tmp_path):
        text = path.read_text("utf-8")
        seen = Strict(text)
        assert len(seen.ids) == len(set(seen.ids))
        assert not re.search(r"https?:|//[a-z]+\.|@import|\bsrc=|\bfetch\(|XMLHttpRequest", text)
        assert all(u.startswith("#") for u in re.findall(r"url\(([^)]*)\)", text))
        for tag, attributes in seen.seen:
            assert "src" not in attributes and attributes.get("href", "#").startswith("#")
            assert not any(name.startswith("on") for name in attributes), (
                f"<{tag}> has an inline handler"
            )
            for name in ("aria-labelledby", "aria-describedby"):
                assert set(attributes.get(name, "").split()) <= set(seen.ids)
            if tag == "svg":
                assert attributes.get("aria-hidden") == "true" or attributes["aria-label"]
        assert [t for t, _ in seen.seen if t == "h1"] == ["h1"]
        assert "nan" not in "".join(seen.text).lower().replace("finance", "")


def test_embedded_data_are_the_arrays(city, written):
    """Would catch a domain, belief or repair that belongs to another user or step. The oracle is
    the live stream, which draws the same noise from the same seed; the report works it out again
    from the releases."""
    _, truth, releaser, result = city
    data = data_of(written[1])
    live = releaser.start(users=USERS)
    for t in range(STEPS):
        step = live.step(truth[:, t])
        for u, own in enumerate(data["users"]):
            if t not in own["at"]:  # before the first release: nothing is shown
                assert (truth[u, : t + 1] < 0).all()
                continue
            own = {
                name: {own["at"][k]: value for k, value in enumerate(values)}
                for name, values in own.items()
                if isinstance(values, list)
            }
            assert (
                own["true"][t] == truth[u, t]
                and own["released"][t] == step.released[u] == result.released[u, t]
            )
            for name in (
                "domain_size",
                "added",
                "disconnected",
                "isolated",
                "exposed",
                "surrogate",
            ):
                assert own[name][t] == getattr(step, name)[u]
            if truth[u, t] < 0:
                assert own["domain"][t] is None
                continue
            assert cells_of(own["domain"][t]) == live.domain(u).cells().tolist()
            belief = np.zeros(ROWS * COLS)
            belief[own["belief"][t][::2]] = own["belief"][t][1::2]
            np.testing.assert_allclose(belief, live.posterior(u), atol=5.1e-6)
            edges = {
                tuple(sorted(e))
                for e in zip(own["edges"][t][::2], own["edges"][t][1::2], strict=True)
            }
            kept = {tuple(e) for e in releaser.graph.constrain(live.domain(u)).edges().tolist()}
            assert {
                tuple(e) for e in live.policy(u).edges().tolist()
            } == kept | edges and not kept & edges
    for u, spent in enumerate(data["figures"]["composition"]["users"]):
        assert (
            spent["epsilon"] == live.ledger.epsilon(u)
            and spent["edges"] == live.ledger.graph(u).n_edges
        )
    attack = pf.attack(result, truth)
    for u, own in enumerate(data["users"]):
        assert own["guess"] == attack.online_bayes[u, own["at"]].tolist()
        assert own["times"] == [f"t<{k}>" for k in own["at"]]
    assert data["users"][0]["label"] == NASTY


def test_figures_are_those_of_the_functions(city, written):
    """Would catch a figure from the wrong row, without clusters, or rounded on its way."""
    grid, truth, _, result = city
    figures = data_of(written[1])["figures"]
    table = pf.attack(result, truth).table()
    for row, shown in zip(table, figures["attack"]["rows"], strict=True):
        assert (row.estimator, row.expected_km, row.error_km, row.hit_rate) == (
            shown["estimator"], shown["expected_km"], shown["error_km"], shown["hit_rate"],
        )  # fmt: skip
        assert list(row.error_interval) == shown["error_interval"]
    u = pf.estimate_utility(grid, truth, result.released, clusters="rows").as_dict()
    for name, value in figures["utility"].items():
        if not name.startswith("quantile"):
            assert value == u[name], name
    assert figures["utility"]["quantiles"] == [[q, u[f"q{q}"]] for q in (0.5, 0.9, 0.99)]
    assert (
        figures["flags"]["surrogate"] == result.surrogate.sum()
        and figures["flags"]["exposed"] == result.exposed.sum()
    )
    assert (
        figures["flags"]["repaired"] == (result.added > 0).sum()
        and figures["flags"]["edges_added"] == result.added.sum()
    )
    assert figures["policy"] == {
        "locations": 81,
        "edges": 9 * 36,
        "components": 9,
        "without_edges": 0,
        "sizes": [[9, 9]],
        "largest_degree": 8,
    }
    c = figures["certificate"]
    assert c["ok"] and c["epsilons"] == [0.7] and 0 < c["worst"] <= 0.7
    own = result.certificate
    for name in ("worst", "releases", "tables", "noises", "exposed", "rounding"):
        assert c[name] == getattr(own, name), name
    assert c["releases"] == (truth >= 0).sum()
    kept = own.ledger.kept_edges()
    assert (figures["composition"]["kept"], figures["composition"]["of"]) == ((kept > 0).sum(), 5)
    error = grid.distance(truth[truth >= 0], result.released[truth >= 0])
    for name, cells in (("release", result.released), ("guess", pf.attack(result, truth).bayes)):
        for t, mean in enumerate(figures["curves"][name]["time"]["mean"]):
            by_hand = [
                grid.distance(truth[k, t], cells[k, t]) for k in range(USERS) if truth[k, t] >= 0
            ]
            assert mean == pytest.approx(np.mean(by_hand), rel=1e-14)
    cdf = figures["curves"]["release"]["cdf"]
    for km, share in zip(cdf["km"], cdf["share"], strict=True):
        assert (error <= km).mean() >= share - 1e-12 and (error < km).mean() < share + 1e-12


def test_numbers_shown_are_the_figures(written):
    """Would catch a number in the wrong row of a table: what stands beside each term is
    compared, in full and as written."""
    text = written[1]
    figures = data_of(text)["figures"]

    def beside(term):
        found = re.search(
            rf'<th scope="row">{re.escape(term)}</th><td><data value="([^"]*)">([^<]*)</data>', text
        )
        return float(found[1]), found[2]

    expected = {
        "Mean distance": figures["utility"]["e_eu"],
        "Worst place, mean": figures["utility"]["worst"],
    }
    expected |= {f"{100 * q:g} % are within": x for q, x in figures["utility"]["quantiles"]}
    for row in figures["attack"]["rows"]:
        expected[ESTIMATORS[row["estimator"]]] = row["expected_km"]
    for term, value in expected.items():
        assert beside(term) == (value, f"{value:.3f}")
    for term, name in (
        ("Surrogate", "surrogate"),
        ("Exposed", "exposed"),
        ("Repaired", "repaired"),
    ):
        assert beside(term) == (figures["flags"][name], f"{figures['flags'][name]:,}")
    assert f'<dd><data value="{figures["attack"]["utility_km"]!r}">' in text


def tiles_of(text):
    found = re.search(r'<dl class="tiles".*?</dl>', text, re.S)[0]
    return [" ".join(Strict(part).text) for part in re.findall(r"<div.*?</div>", found, re.S)]


def test_tiles_say_what_they_rest_on(city, written, tmp_path):
    """The tiles said "expected" without saying under what, and counted some of the steps as proved.
    Would catch an expectation that is taken for a fact, and what composition leaves going
    unsaid."""
    _, truth, releaser, result = city
    shared = pf.write_report(tmp_path / "s.html", releaser, result).read_text("utf-8")
    told = [t for t in tiles_of(shared) if "expected" in t]
    assert len(told) == 2 and all("if people move as the model says" in t for t in told)
    assert not any("expected" in t for t in tiles_of(written[1]))
    kept = int((result.certificate.ledger.kept_edges() > 0).sum())
    for text in (shared, written[1]):
        tiles = tiles_of(text)
        assert any(f"all {(truth >= 0).sum()} releases" in t and "proved" in t for t in tiles)
        [mine] = [t for t in tiles if "an edge that every release kept" in t]
        assert re.search(rf"\b{kept}\b\s+of\s+{USERS}\b", mine), mine


def test_tiles_of_single_releases_say_what_they_expect(city, tmp_path):
    """An exact mean over even places looked like a measurement."""
    grid = city[0]
    m = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0)
    weight = np.arange(grid.size) + 1.0
    for prior, said in ((None, "equally likely"), (weight, "as likely as the prior says")):
        path = pf.write_report(tmp_path / "m.html", m, prior=prior, overwrite=True)
        told = [t for t in tiles_of(path.read_text("utf-8")) if "off by" in t]
        assert len(told) == 2 and all("expected" in t and said in t for t in told)


def test_the_first_sentence_of_traces_says_when_a_release_leaves_the_block(written):
    assert "unless the step was repaired or the model of movement was wrong" in written[1]
    g = data_of(written[1])["figures"]["flags"]
    here = f"Here {g['repaired']} of {g['steps']} steps were repaired, and the model was wrong at "
    assert f"{here}{g['surrogate']}." in written[1] and g["repaired"] > 0


def test_strings_from_outside_are_text(written):
    """Would catch a title or label that becomes markup, ends the script element, or is taken for
    a placeholder."""
    text = written[1]
    assert text.count("<script") == text.count("</script>") == 2
    assert "<script>window" not in text and "Tom &amp; &quot;Ann&quot; &lt;/script&gt;" in text
    assert "".join(Strict(text).text).count(NASTY) >= 2  # heading and title, as they were
    assert text.count("{{") == text.count("{{css}}")  # only as text


def test_without_truth_only_what_an_observer_knows(city, tmp_path):
    """Would catch any leak of true locations: the file is the same, byte for byte, when it is
    made from the releases alone."""
    _, _, releaser, result = city
    mine = pf.write_report(tmp_path / "a.html", releaser, result).read_bytes()
    theirs = pf.write_report(
        tmp_path / "b.html", releaser, releaser.observe(result.released)
    ).read_bytes()
    assert mine == theirs
    data = data_of(mine.decode())
    assert (
        not any({"true", "surrogate"} & set(own) for own in data["users"])
        and data["figures"]["flags"]["surrogate"] is None
    )
    assert (
        b"Keep this file private" not in mine
        and b"987654321" not in mine
        and b"Seeded release" in mine
    )


def test_true_locations_are_announced_and_kept_from_others(city, written, tmp_path):
    """Would catch a private report that does not say so, or that others on the machine can read."""
    _, truth, releaser, result = city
    assert "Keep this file private" in written[1]
    assert stat.S_IMODE(os.stat(written[0]).st_mode) == 0o600
    mask = os.umask(0o022)
    try:
        shared = pf.write_report(tmp_path / "shared.html", releaser, result)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(os.stat(shared).st_mode) == 0o644
    told = releaser.run(truth, priors="point", evidence=True)
    path = pf.write_report(tmp_path / "point.html", releaser, told)
    assert (
        "Keep this file private" in path.read_text("utf-8")
        and stat.S_IMODE(os.stat(path).st_mode) == 0o600
    )


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "plm", "calibration": "graph"},
        {"mechanism": "planar-laplace", "delta": 0.05},
        {"mechanism": "krr", "repair": "nearest"},
        {"mechanism": "graph-exponential"},
        {"mechanism": "optimal"},
        {"mechanism": "ppim", "remap": "euclidean"},
        {"mechanism": "ppim", "likelihood": "density"},
    ],
    ids=str,
)
def test_any_releaser(city, tmp_path, options):
    """Would catch a mechanism that the certificate of a step cannot be made for, or counts that
    a replay does not repeat."""
    grid, truth, _, _ = city
    releaser = pf.TraceReleaser(pf.blocks(grid, 3), lazy_walk(grid), epsilon=1.0, rng=2, **options)
    result = releaser.run(truth[:2, :4], evidence=True)
    figures = data_of(
        pf.write_report(tmp_path / "r.html", releaser, result, truth[:2, :4]).read_text("utf-8")
    )["figures"]
    assert (
        figures["certificate"]["ok"]
        and figures["certificate"]["releases"] == (truth[:2, :4] >= 0).sum()
        and figures["certificate"]["tables"] == result.certificate.tables
        and figures["certificate"]["noises"] == result.certificate.noises
        and figures["certificate"]["worst"] == result.certificate.worst
    )
    assert figures["settings"]["mechanism"] == options["mechanism"]


def test_a_model_with_periods(city, tmp_path):
    """Would catch a replay that moves users by the matrix of another period, which gives other
    domains and beliefs."""
    grid, truth, releaser, _ = city
    chain = releaser.model.chains[0]
    slow = scipy.sparse.csr_array(
        (chain.data, chain.indices, chain.indptr), shape=(grid.size, grid.size)
    )
    stay = scipy.sparse.eye_array(grid.size)
    model = pf.MobilityModel(
        grid,
        sparse.stack(
            [sparse.COO.from_scipy_sparse(m.tocoo()) for m in (slow, 0.5 * slow + 0.5 * stay)]
        ),
    )
    periodic = pf.TraceReleaser(releaser.graph, model, epsilon=1.0, rng=4)
    periods = [0, 1, 1, 0, 1, 0, 0, 1]
    result = periodic.run(truth, evidence=True, periods=periods)
    data = data_of(pf.write_report(tmp_path / "p.html", periodic, result, truth).read_text("utf-8"))
    live = periodic.start(users=USERS)
    for t in range(STEPS):
        live.step(truth[:, t], period=periods[t - 1] if t else None)
        for u in np.flatnonzero(truth[:, t] >= 0):
            belief, own = np.zeros(grid.size), data["users"][u]
            seen = own["belief"][own["at"].index(t)]
            belief[seen[::2]] = seen[1::2]
            np.testing.assert_allclose(belief, live.posterior(u), atol=5.1e-6)


def test_traces_of_one_user_belong_together(city, tmp_path):
    """Would catch intervals that take several traces of a user for as many users, and names that
    cannot be told apart."""
    grid, truth, releaser, result = city
    text = pf.write_report(
        tmp_path / "u.html", releaser, result, truth, labels=["ann", "bob", "ann", "cat", "ann"]
    ).read_text("utf-8")
    data = data_of(text)
    together = pf.estimate_utility(
        grid, truth, result.released, clusters=[0, 1, 0, 2, 0]
    ).intervals["e_eu"]
    assert (
        data["figures"]["utility"]["e_eu_low"],
        data["figures"]["utility"]["e_eu_high"],
    ) == together
    names = [own["label"] for own in data["users"]]
    assert names == ["ann, trace 1", "bob", "ann, trace 2", "cat", "ann, trace 3"]
    assert "5 traces are of 3 persons" in text
    assert "3 users in 5 traces" in text
    table = pf.attack(result, truth).table(persons=[0, 1, 0, 2, 0])
    assert data["figures"]["attack"]["users"] == table.users == 3
    for row, told in zip(table, data["figures"]["attack"]["rows"], strict=True):
        assert tuple(told["error_interval"]) == pytest.approx(row.error_interval)
    releases = (result.released >= 0).sum(axis=1)
    most = max(releases[[0, 2, 4]].sum(), releases[1], releases[3]) * releaser.epsilon
    assert data["figures"]["composition"]["epsilon"]["high"] == pytest.approx(most)


def test_of_one_person_no_interval_is_claimed(city, tmp_path):
    """One person cut into five traces is one sample."""
    _, truth, releaser, result = city
    text = pf.write_report(
        tmp_path / "o.html", releaser, result, truth, labels=["ann"] * len(truth)
    ).read_text("utf-8")
    figures = data_of(text)["figures"]
    assert (figures["users"], figures["attack"]["users"]) == (1, 1)
    for row in figures["attack"]["rows"]:
        assert row["error_interval"] == row["expected_interval"] == [None, None]
    for line in ("release", "guess"):
        assert not any(isinstance(v, float) for v in figures["curves"][line]["time"]["high"])
    assert "Of one person none can be given." in text


def test_a_model_that_is_often_wrong_is_pointed_out(city, written, tmp_path):
    """Would catch errors of the model that pass for privacy."""
    grid, truth, releaser, _ = city
    frozen = pf.MobilityModel(
        grid, scipy.sparse.eye_array(grid.size, format="csr")
    )  # people stay where they are: they do not
    wrong = pf.TraceReleaser(releaser.graph, frozen, epsilon=1.0, rng=1)
    result = wrong.run(truth, evidence=True)
    assert result.surrogate.mean() > 0.05
    warning = "a better model would do better"
    assert warning in pf.write_report(tmp_path / "w.html", wrong, result, truth).read_text("utf-8")
    assert warning not in written[1]


def test_a_mechanism_alone(city, tmp_path):
    """Would catch figures that are not the exact ones, and a picture of probabilities that are
    not Pr(z|s)."""
    grid = city[0]
    m = pf.PPIM(pf.blocks(grid, 4), epsilon=1.0)
    labels = np.arange(grid.size) % 3
    data = data_of(
        pf.write_report(tmp_path / "m.html", m, users=[3, 70], categories=labels).read_text("utf-8")
    )
    u, p, c = pf.utility(m, categories=labels), pf.privacy(m), pf.certify(m)
    f = data["figures"]
    assert (f["expected"]["e_eu"], f["expected"]["e_r"], f["expected"]["e_poi"]) == (
        u.e_eu,
        u.e_r,
        u.e_poi,
    )
    assert (f["privacy"]["error"], f["privacy"]["entropy"], f["privacy"]["lift"]) == (
        p.error,
        p.entropy,
        p.lift,
    )
    assert (
        f["certificate"]["worst"],
        tuple(f["certificate"]["edge"]),
        f["certificate"]["proof"],
    ) == (c.worst, c.edge, c.proof)
    own = data["users"][0]
    assert own["true"] == [3, 70] and own["released"] == [-1, -1]
    for k, s in enumerate((3, 70)):
        outputs, probability = m.pmf(s)
        assert cells_of(own["domain"][k]) == outputs.tolist()
        shown = dict(zip(own["belief"][k][::2], own["belief"][k][1::2], strict=True))
        np.testing.assert_allclose([shown[z] for z in outputs.tolist()], probability, atol=5.1e-6)


def test_single_releases(city, tmp_path):
    """Would catch a posterior that is not Bayes' rule under the prior, and an estimate of other
    pairs."""
    grid = city[0]
    m = pf.PLM(pf.blocks(grid, 3), epsilon=1.0)
    prior = np.random.default_rng(0).random(grid.size)
    true = np.random.default_rng(1).integers(0, grid.size, 40)
    released = m.release(true, rng=3)
    released[5] = -1
    data = data_of(
        pf.write_report(
            tmp_path / "s.html", m, released, true, prior=prior, users=[7, 2]
        ).read_text("utf-8")
    )
    assert data["figures"]["utility"]["e_eu"] == pf.estimate_utility(grid, true, released).e_eu
    assert data["figures"]["expected"]["e_eu"] == pf.utility(m, prior=prior).e_eu
    assert data["figures"]["privacy"]["error"] == pf.privacy(m, prior=prior).error
    own = data["users"][0]
    assert own["true"] == true[[7, 2]].tolist() and own["released"] == released[[7, 2]].tolist()
    z = int(released[7])
    joint = {
        s: prior[s] * dict(zip(*(v.tolist() for v in m.pmf(s)), strict=True))[z]
        for s in m.graph.component(z).tolist()
    }
    shown = dict(zip(own["belief"][0][::2], own["belief"][0][1::2], strict=True))
    for s, mass in joint.items():
        assert shown[s] == pytest.approx(mass / sum(joint.values()), abs=5.1e-6)
    assert (
        "true"
        not in data_of(pf.write_report(tmp_path / "t.html", m, released).read_text("utf-8"))[
            "users"
        ][0]
    )


def test_what_is_too_large_for_exact_answers_is_said(tmp_path):
    """Would catch a report that fails, or shows nothing, where output sets are beyond exact
    figures."""
    grid = pf.Grid(50, 50, cell_km=0.2)
    m = pf.PPIM(pf.complete(grid), epsilon=1.0)
    true = np.arange(40) * 60
    released = (true + 1) % grid.size  # what a release would give does not matter here
    text = pf.write_report(tmp_path / "l.html", m, released, true, users=[0, 1]).read_text("utf-8")
    f = data_of(text)["figures"]
    assert f["expected"] is None and f["privacy"] is None and f["utility"]["count"] == 40
    assert "too large for exact figures" in text and "too large for an exact answer" in text


def test_points_off_a_grid(tmp_path):
    """Would catch coordinates that belong to other locations, and edges that are not the
    policy's."""
    rng = np.random.default_rng(0)
    points = pf.Points(rng.random((12, 2)) * 3 + 5)
    graph = pf.PolicyGraph.from_edges(points, [(0, 1), (1, 2), (5, 6), (7, 8), (8, 9), (7, 9)])
    model = pf.MobilityModel(points, scipy.sparse.csr_array(np.full((12, 12), 1 / 12)))
    releaser = pf.TraceReleaser(graph, model, epsilon=1.0, rng=1)
    truth = rng.integers(0, 12, (2, 4))
    data = data_of(
        pf.write_report(
            tmp_path / "p.html", releaser, releaser.run(truth, evidence=True), truth
        ).read_text("utf-8")
    )
    where = data["map"]
    xy = np.stack([where["x"], where["y"]], axis=1) + [where["x0"], where["y0"]]
    np.testing.assert_allclose(xy, np.asarray(points.xy)[where["cells"]], atol=1e-6)
    assert np.reshape(data["outline"][0], (-1, 2)).tolist() == graph.edges().tolist()
    assert (
        data["figures"]["policy"]["components"] == 3
        and data["figures"]["policy"]["without_edges"] == 4
    )


def test_outline_is_where_components_meet():
    """Would catch lines that are off by a row, or drawn between locations that have no edges at
    all."""
    grid = pf.Grid(4, 5)
    label = np.array([[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [2, 2, 2, 2, -1], [-1, -1, -1, -1, -1]])
    across, upwards = picture.outline(pf.categories(grid, label.ravel(), None))
    got = {("h", r, c) for r, a, b in np.reshape(across, (-1, 3)).tolist() for c in range(a, b)}
    got |= {("v", c, r) for c, a, b in np.reshape(upwards, (-1, 3)).tolist() for r in range(a, b)}
    expected = {
        ("h", r, c) for r in range(1, 4) for c in range(5) if label[r, c] != label[r - 1, c]
    }
    expected |= {
        ("v", c, r) for c in range(1, 5) for r in range(4) if label[r, c] != label[r, c - 1]
    }
    assert got == expected


def test_the_picture_shows_as_many_edges_as_can_be_seen(monkeypatch):
    """Would catch edges drawn outside the window, or left out of it, and a picture of a million
    locations."""
    grid = pf.Grid(30, 34)
    drawing, text = picture.policy_picture(pf.neighbours8(grid), grid.size // 2)
    side = int(re.match(r"(\d+) x \1 of 30 x 34 cells", text)[1])
    edges = re.search(r'class="edges" d="([^"]*)"', drawing)[1].count("M")
    assert (
        edges
        == 2 * side * (side - 1) + 2 * (side - 1) ** 2
        <= limits.PICTURE_EDGES
        < 2 * 28 * 27 + 2 * 27**2
    )
    assert (
        'class="edges"' not in picture.policy_picture(pf.complete(grid), 0)[0]
    )  # half a million: outlines say it
    monkeypatch.setattr(limits, "POINTS", 60)
    points = pf.Points(np.random.default_rng(0).random((100, 2)))
    drawing, text = picture.policy_picture(
        pf.PolicyGraph.from_edges(points, [(k, k + 1) for k in range(99)]), 7
    )
    assert drawing.count("<circle") == 60 and "60 locations nearest to location 7, of 100" in text


def test_the_map_goes_through_releases_and_short_silence_with_their_clock(city, tmp_path):
    """Would catch a map that opens in silence and plays through hundreds of empty steps, or names
    the time of another user's step."""
    _, truth, releaser, _ = city
    late = np.full((2, 300), -1)
    late[0, -1] = truth[0, 0]  # one release, at the end
    late[1, [0, 2, 3, 200, 201]] = truth[1, [0, 1, 1, 0, 1]]
    result = releaser.run(late, evidence=True)
    times = np.datetime64("2024-05-01T08:00", "s") + 300 * np.arange(600).reshape(2, 300)
    text = pf.write_report(tmp_path / "l.html", releaser, result, times=times).read_text("utf-8")
    one, other = data_of(text)["users"]
    assert one["at"] == [299] and one["times"] == ["2024-05-02 08:55:00"]
    assert other["at"] == [0, 1, 2, 3, 200, 201] and len(other["domain"]) == 6
    assert other["times"][4] == str(times[1, 200]).replace("T", " ")
    with pytest.raises(pf.InvalidParameter, match=r"times has shape \(2, 3\)"):
        pf.write_report(tmp_path / "m.html", releaser, result, times=times[:, :3])


def test_a_report_with_true_locations_tells_the_surrogates(city, tmp_path):
    """Would catch 'true locations, which this report does not hold' in a report that does: of
    evidence that an observer laid out, as the command line does."""
    grid, truth, releaser, _ = city
    frozen = pf.MobilityModel(grid, scipy.sparse.eye_array(grid.size, format="csr"))
    wrong = pf.TraceReleaser(releaser.graph, frozen, epsilon=1.0, rng=1)
    result = wrong.run(truth, evidence=True)
    seen = wrong.observe(result.released)
    text = pf.write_report(tmp_path / "w.html", wrong, seen, truth).read_text("utf-8")
    assert "does not hold" not in text and "a better model would do better" in text
    assert data_of(text)["figures"]["flags"]["surrogate"] == result.surrogate.sum() > 0
    blind = pf.write_report(tmp_path / "b.html", wrong, seen).read_text("utf-8")
    assert "which this report does not hold" in blind
    assert "if people move as the model says" in blind


def test_legend_and_layers_name_what_is_there(city, tmp_path):
    """Would catch entries for things that are never drawn."""
    grid, truth, releaser, _ = city
    free = pf.TraceReleaser(pf.complete(grid), releaser.model, epsilon=1.0, rng=1)
    result = free.run(truth, evidence=True)
    assert not result.added.any()
    text = pf.write_report(tmp_path / "f.html", free, result).read_text("utf-8")
    for absent in ("edge added by repair", 'data-show="repaired"', "true location</li>"):
        assert absent not in text
    assert "best guess so far" in text and 'data-show="belief"' in text


def test_the_curve_of_shares_reaches_all_where_all_are():
    """Would catch a curve that jumps to 100 % at its 99 % quantile."""
    distance = np.concatenate([np.linspace(0, 1, 999), [50.0]])
    curve = cumulative(distance)
    assert curve["share"][-1] == 1.0 and curve["km"][-1] == 50.0
    assert curve["km"][curve["share"].index(0.99)] < 1.0
    drawn = charts.share_chart({"release": curve}, "km", "")
    path = re.search(r'<path class="line release" d="([^"]*)"', drawn)[1]
    heights = [float(v) for v in re.findall(r"V([\d.]+)", path)]
    top = charts._TOP
    assert min(heights) > top, "the farthest lies beyond the axis"


def test_bands_of_few_users_do_not_rule_the_chart():
    series = {"step": [0, 1], "mean": [1.0, 1.0], "low": [0.0, 0.9], "high": [18.0, 1.1]}
    drawn = charts.time_chart({"release": series}, "km", "")
    labels = [float(v) for v in re.findall(r'text-anchor="end">([\d.]+)<', drawn)]
    assert max(labels) <= 2.0


@pytest.mark.parametrize("kind", ["traces", "mechanism"])
def test_what_is_given_away_is_said_first(city, tmp_path, kind):
    """A proved policy may still let the block be known."""
    grid, truth, releaser, result = city
    m = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0)
    what = (releaser, result, truth) if kind == "traces" else (m,)
    text = pf.write_report(tmp_path / "h.html", *what).read_text("utf-8")
    told = text.index("Whoever sees a release knows in which group of places somebody is")
    assert told < text.index("proved")
    if kind == "traces":
        table = pf.attack(result, truth).table()
        before, after = table["no release"].error_km, table["bayes"].error_km
        said = re.search(
            r"best guess from <data value=\"([^\"]*)\".*?to <data value=\"([^\"]*)", text
        )
        assert (float(said[1]), float(said[2])) == (before, after)


def test_the_smallest_report(city, tmp_path):
    """Would catch charts and intervals that need two steps or two users, and users who come
    later than the map goes."""
    _, truth, releaser, _ = city
    one = releaser.run(truth[:1, :1], evidence=True)
    f = data_of(
        pf.write_report(tmp_path / "a.html", releaser, one, truth[:1, :1]).read_text("utf-8")
    )["figures"]
    assert (
        f["attack"]["rows"][0]["error_interval"] == [None, None]
        and f["certificate"]["releases"] == 1
    )
    late = releaser.run(truth[2:3], evidence=True)  # nothing at the first step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "STEPS", 1)
        data = data_of(pf.write_report(tmp_path / "b.html", releaser, late).read_text("utf-8"))
    assert data["users"][0]["released"] == [late.released[late.released >= 0][0]]
    assert data["figures"]["certificate"]["ok"]


@pytest.mark.parametrize("seed", range(5))
def test_runs_give_back_the_cells(seed):
    cells = np.flatnonzero(np.random.default_rng(seed).random(60) < 0.6)
    assert cells_of(trails._runs(cells)) == cells.tolist() and trails._runs(cells[:0]) == []


def test_long_traces_are_averaged_over_equal_parts(monkeypatch):
    """Would catch parts that weigh missing steps, or miss the last, shorter part."""
    monkeypatch.setattr(limits, "CHART", 3)
    values = np.array([[1.0, 2.0, np.nan, 4.0, 5.0], [3.0, np.nan, np.nan, 6.0, 7.0]])
    found = over_time(values, np.arange(2))
    assert (
        found["width"] == 2
        and found["step"] == [0.5, 2.5, 4.0]
        and found["mean"] == [2.0, 5.0, 6.0]
    )
    # two traces of one person are one sample: no band
    assert np.isnan(over_time(values, np.zeros(2, int))["high"]).all()
    # of few persons an interval spans everything: there is a band from five on
    assert np.isnan(over_time(np.tile(values, (2, 1)), np.arange(4))["high"]).all()
    assert np.isfinite(over_time(np.tile(values, (3, 1)), np.arange(6))["high"]).all()


def test_a_broken_promise_is_said_first():
    """Would catch a report that reads well of a mechanism that fails."""
    broken = {
        "ok": False,
        "epsilon": 1.0,
        "worst": 1.5,
        "edge": [1, 2],
        "output": 3,
        "proof": "table",
        "shapes": 1,
        "edges": 4,
        "mixed": 0.0,
        "rounding": 0.0,
        "reason": "a ratio of weights is above e^epsilon",
        "verdict": "does not hold",
    }
    text = sections.certificate_section({"mode": "single", "certificate": broken})
    assert "does not hold" in text and "above e^epsilon" in text and "promise holds" not in text


def test_what_is_not_proved_is_not_said_to_be_broken(tmp_path):
    """Float64 leaves the promise of thin points unproved: no ratio above it was found."""
    p = pf.Points([[k * 1000.0, float(k % 2) * 1e-3] for k in range(40)], resolution_km=1e-3)
    m = pf.PPIM(pf.complete(p), epsilon=1.0, sampler="geometric")
    c = pf.certify(m)
    assert not c.ok and c.verdict == "is not proved" and "is NOT PROVED" in str(c)
    text = pf.write_report(tmp_path / "m.html", m).read_text("utf-8")
    assert ">not proved<" in text and "The promise is not proved:" in text
    assert "broken<" not in text and "does not hold" not in text and "proved</span>" in text
    assert "&#10003; proved" not in text and "promise holds" not in text


def test_a_large_report_is_thinned_out_and_says_so(city, monkeypatch, tmp_path):
    """Would catch files that grow with the input, and thinning that nobody is told of."""
    _, truth, releaser, result = city
    monkeypatch.setattr(limits, "SHOWN", 2)
    monkeypatch.setattr(limits, "STEPS", 5)
    monkeypatch.setattr(limits, "NUMBERS", 120)
    text = pf.write_report(tmp_path / "t.html", releaser, result, truth).read_text("utf-8")
    data = data_of(text)
    assert len(data["users"]) == 2 and len(data["users"][0]["released"]) == 5
    assert sum(d is None for own in data["users"] for d in own["domain"]) > 1
    assert data["figures"]["certificate"]["releases"] == (truth >= 0).sum()  # of all, not of some
    assert data["figures"]["attack"]["users"] == USERS
    assert data["figures"]["composition"]["users"][0]["epsilon"] == pytest.approx(
        0.7 * STEPS
    )  # of all steps nevertheless
    for note in (
        "The map shows 2 of 5 traces",
        "the first 5 steps of each user; ",
        "to keep the file small",
    ):
        assert note in text, note


def without_ends(own):
    """A user's numbers, less where columns lie."""
    return {name: own[name] for name in own if name not in ("at", "row", "label")}


def test_events_are_followed_as_their_array_is(city, tmp_path):
    """Would catch results put at another release, and silence that is no longer shown."""
    _, truth, releaser, result = city
    events = pf.Events.of_array(result.released)
    where = truth[events.persons, events.steps]
    clock = np.char.add("t", events.steps.astype(str))
    order = np.random.default_rng(0).permutation(len(events))
    shuffled = pf.Events(events.persons[order], events.steps[order], events.cells[order])
    told = data_of(
        pf.write_report(
            tmp_path / "e.html", releaser, releaser.observe(shuffled), where[order],
            times=clock[order],
        ).read_text("utf-8")
    )  # fmt: skip
    times = np.full(truth.shape, "", object)
    times[events.persons, events.steps] = clock
    array = data_of(
        pf.write_report(
            tmp_path / "a.html", releaser, releaser.observe(result.released), truth, times=times
        ).read_text("utf-8")
    )
    for own, other in zip(told["users"], array["users"], strict=True):
        assert own["at"] == other["at"] and own["label"] == other["label"]
        told_of, known = without_ends(own), without_ends(other)
        silent = np.array(known["released"]) < 0
        assert told_of.keys() == known.keys() and silent.any() == (own["row"] == 1)
        for name, values in known.items():
            for k in np.flatnonzero(~silent):
                assert told_of[name][k] == pytest.approx(values[k], abs=2e-6), (name, k)
            assert np.array(told_of["released"])[silent].tolist() == [-1] * silent.sum()
    for name in ("certificate", "composition", "policy"):
        assert told["figures"][name] == array["figures"][name]
    for name in ("e_eu", "worst", "e_eu_high"):
        assert told["figures"]["utility"][name] == pytest.approx(array["figures"]["utility"][name])
    rows = (told["figures"]["attack"]["rows"], array["figures"]["attack"]["rows"])
    for one, other in zip(*rows, strict=True):
        assert one["error_km"] == pytest.approx(other["error_km"], abs=1e-9)
    flags, other = told["figures"]["flags"], array["figures"]["flags"]
    assert flags["missing"] == other["missing"] - 1 == 1  # the array has a step before a trace
    assert {k: v for k, v in flags.items() if k != "missing"} == {
        k: v for k, v in other.items() if k != "missing"
    }


@pytest.mark.parametrize("kind", ["blocks", "complete"])
def test_long_silence_costs_a_report_nothing(kind, tmp_path):
    """Would catch a row of evidence, or a belief, for each of the steps of which nobody says
    anything: a minute's steps over years are millions."""
    grid = pf.Grid(15, 20)
    policies = {"default": pf.blocks(grid, 3), "p": pf.complete(grid)}
    model = lazy_walk(grid)
    releaser = pf.TraceReleaser(policies, model, epsilon=1.0, rng=5)
    rng, per, n = np.random.default_rng(2), 6, 30
    steps = np.cumsum(rng.choice([1, 2, 500_000], (n, per)), axis=1)
    events = pf.Events(
        np.repeat(np.arange(n), per), steps.ravel(), rng.integers(0, grid.size, n * per)
    )
    policy = np.where(np.arange(n * per) % 2, "p", "default") if kind == "complete" else None
    released = releaser.run(events, policy=policy, evidence=True)
    tracemalloc.start()
    try:
        path = pf.write_report(tmp_path / "e.html", releaser, released, users=[0, 1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = path.read_text("utf-8")
    figures = data_of(text)["figures"]
    span = steps[:, -1] - steps[:, 0] + 1
    assert figures["flags"]["missing"] == span.sum() - n * per > 10_000_000
    assert figures["steps"] <= per * (limits.SILENCE + 1)
    assert figures["certificate"]["releases"] == figures["flags"]["steps"] == n * per
    assert peak < 8 * figures["flags"]["missing"]  # a number for each silent step
    assert "without long silence" in text


def test_what_is_too_long_to_lay_out_is_said(city, monkeypatch, tmp_path):
    _, _, releaser, result = city
    monkeypatch.setattr(limits, "ENTRIES", 20)
    seen = releaser.observe(pf.Events.of_array(result.released))
    with pytest.raises(pf.TooLarge, match="report on fewer"):
        pf.write_report(tmp_path / "e.html", releaser, seen)


def test_refusals(city, tmp_path):
    """Would catch an option accepted and ignored, and a report on releases of another releaser."""
    grid, truth, releaser, result = city
    m = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0)
    path = tmp_path / "r.html"
    other = pf.TraceReleaser(pf.blocks(grid, 4), releaser.model, epsilon=0.7)
    small = pf.Grid(3, 3)
    elsewhere = pf.TraceReleaser(pf.blocks(small, 3), lazy_walk(small), epsilon=1.0)
    many = pf.TraceReleaser(releaser.graph, releaser.model, epsilon=1.0, rng=1).run(
        np.zeros((60, 1), int), evidence=True
    )
    cases = [
        (lambda: pf.write_report(path, releaser), pf.InvalidEvidence, "evidence=True"),
        (
            lambda: pf.write_report(path, releaser, releaser.run(truth)),
            pf.InvalidEvidence,
            "evidence=True",
        ),
        (lambda: pf.write_report(path, elsewhere, result), pf.InvalidEvidence, "another map"),
        (lambda: pf.write_report(path, other, result), pf.PGLPError, "releaser"),
        (
            lambda: pf.write_report(path, releaser, replace(result, added=result.added + 1)),
            pf.InvalidEvidence,
            "added of user 0",
        ),
        (
            lambda: pf.write_report(path, releaser, result, truth[:, :2]),
            pf.InvalidParameter,
            "shape",
        ),
        (
            lambda: pf.write_report(
                path, releaser, releaser.run(np.full((1, 2), -1), evidence=True)
            ),
            pf.InvalidEvidence,
            "nothing was",
        ),
        (
            lambda: pf.write_report(path, releaser, result, np.full_like(truth, -1)),
            pf.InvalidParameter,
            "unknown",
        ),
        (lambda: pf.write_report(path, m, [1, 2], [-1, -1]), pf.InvalidParameter, "unknown"),
        (lambda: pf.write_report(path, releaser, result, users=[9]), pf.InvalidParameter, "0..4"),
        (
            lambda: pf.write_report(path, releaser, result, users=[1, 1]),
            pf.InvalidParameter,
            "different",
        ),
        (
            lambda: pf.write_report(path, releaser, many, users=range(51)),
            pf.InvalidParameter,
            "at most 50",
        ),
        (
            lambda: pf.write_report(path, releaser, result, labels=["a"]),
            pf.InvalidParameter,
            "one for each trace",
        ),
        (
            lambda: pf.write_report(path, releaser, result, times=["a"]),
            pf.InvalidParameter,
            "one for each step",
        ),
        (lambda: pf.write_report(path, releaser, result, title=3), pf.InvalidParameter, "title"),
        (
            lambda: pf.write_report(path, releaser, result, prior=np.ones(81)),
            pf.InvalidParameter,
            "prior",
        ),
        (lambda: pf.write_report(path, m, None, [1, 2]), pf.InvalidParameter, "released cells"),
        (lambda: pf.write_report(path, m, [1, 2, 3], [1, 2]), pf.InvalidParameter, "pairs"),
        (lambda: pf.write_report(path, m, [1, 81]), pf.InvalidParameter, "0..80"),
        (
            lambda: pf.write_report(path, m, [1, 2], labels=["a"]),
            pf.InvalidParameter,
            "one for each release",
        ),
        (
            lambda: pf.write_report(path, m, [1, 2], labels="ab"),
            pf.InvalidParameter,
            "one for each release",
        ),
        (
            lambda: pf.write_report(path, grid, result),
            pf.InvalidParameter,
            "TraceReleaser or a mechanism",
        ),
        (
            lambda: pf.write_report(tmp_path / "no" / "r.html", m),
            pf.InvalidParameter,
            "not a folder",
        ),
        (lambda: pf.write_report(tmp_path, m), pf.InvalidParameter, "is a folder"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_only_if_told_and_is_whole_or_not_there(city, monkeypatch, tmp_path):
    """Would catch a report lost to a second one, and half a file after a full disk."""
    m = pf.PPIM(pf.blocks(city[0], 3), epsilon=1.0)
    path = pf.write_report(tmp_path / "r.html", m, title="one")
    with pytest.raises(pf.InvalidParameter, match="overwrite=True"):
        pf.write_report(path, m, title="two")
    assert "<h1>one</h1>" in path.read_text("utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            pf.write_report(path, m, title="three", overwrite=True)
    assert "<h1>one</h1>" in path.read_text("utf-8") and [p.name for p in tmp_path.iterdir()] == [
        "r.html"
    ]
    pf.write_report(path, m, title="four", overwrite=True)
    assert "<h1>four</h1>" in path.read_text("utf-8")


# -- tables


def table_of(grid, cells, users, step="5min"):
    """What is written of released traces: a row for each release."""
    rows, steps = np.nonzero(cells >= 0)
    latlon = grid.latlon(cells[rows, steps])
    start = np.datetime64("2026-01-05T08:00:00", "ms")
    return {
        "user": np.array(users)[rows].tolist(),
        "time": (start + steps * np.timedelta64(300, "s")).astype(str).tolist(),
        "lat": latlon[:, 0].tolist(),
        "lon": latlon[:, 1].tolist(),
    }


def test_a_released_table(city, tmp_path):
    """Would catch true locations matched with the wrong user or time, and cells read off by one."""
    pd = pytest.importorskip("pandas")
    grid, truth, releaser, result = city
    names = ["eve", "ann", "bob", "dan", "cat"]
    released = pd.DataFrame(table_of(grid, result.released, names)).sample(frac=1, random_state=1)
    true = pd.DataFrame(table_of(grid, truth, names)).sample(frac=1, random_state=2)
    file = tmp_path / "released.csv"
    released.to_csv(file, index=False)
    data = data_of(
        pf.report_table(tmp_path / "t.html", releaser, file, true, step="5min").read_text("utf-8")
    )
    assert sorted(own["label"] for own in data["users"]) == sorted(names)
    for own in data["users"]:
        u = names.index(own["label"])
        begin = int(np.flatnonzero(truth[u] >= 0)[0])  # a trace starts with its first release
        length = STEPS - begin
        assert (
            own["released"] == result.released[u, begin:].tolist()[: len(own["released"])]
            and own["true"] == truth[u, begin:].tolist()[: len(own["released"])]
            and len(own["released"]) <= length
        )
    m = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0)
    data = data_of(pf.report_table(tmp_path / "s.html", m, released, true).read_text("utf-8"))
    assert data["figures"]["utility"]["e_eu"] == pytest.approx(
        grid.distance(truth[truth >= 0], result.released[truth >= 0]).mean(), rel=1e-12
    )
    apart = np.array(names)[np.nonzero(truth >= 0)[0]]
    together = pf.estimate_utility(
        grid, truth[truth >= 0], result.released[truth >= 0], clusters=apart
    ).intervals["e_eu"]
    assert data["figures"]["utility"]["e_eu_high"] == pytest.approx(
        together[1], rel=1e-12
    )  # a user's releases are one sample
    assert (
        data["steps"][0]
        == f"{released.iloc[0].user}, {released.iloc[0].time[:19].replace('T', ' ')} UTC"
    )
    twice = pd.concat([true, true.iloc[:1]])
    with pytest.raises(pf.InvalidTable, match="one user and time"):
        pf.report_table(tmp_path / "u.html", m, released, twice)
    with pytest.raises(pf.InvalidParameter, match="step is needed"):
        pf.report_table(tmp_path / "u.html", releaser, released)
    with pytest.raises(pf.InvalidParameter, match="TraceReleaser or a mechanism"):
        pf.report_table(tmp_path / "u.html", grid, released)
    with pytest.raises(pf.InvalidParameter, match="priors is for traces"):
        pf.report_table(tmp_path / "u.html", m, released, priors=np.ones(81))


def test_the_truth_of_a_step_is_its_first_fix(city, tmp_path):
    """Would catch errors measured against the last fix of a step: the first is released from."""
    pd = pytest.importorskip("pandas")
    grid, truth, releaser, result = city
    names = ["eve", "ann", "bob", "dan", "cat"]
    released, true = (
        pd.DataFrame(table_of(grid, cells, names)) for cells in (result.released, truth)
    )
    later = true.assign(lat=grid.latlon(0)[0], lon=grid.latlon(0)[1])
    later["time"] = (pd.to_datetime(true["time"]) + pd.Timedelta("1min")).astype(str)
    both = pd.concat([true, later])
    for given, rule in ((truth, {}), (np.where(truth >= 0, 0, -1), {"rule": "last"})):
        page = pf.report_table(
            tmp_path / "t.html", releaser, released, both, step="5min", overwrite=True, **rule
        )
        for own in data_of(page.read_text("utf-8"))["users"]:
            u = names.index(own["label"])
            begin = int(np.flatnonzero(truth[u] >= 0)[0])
            assert own["true"][: STEPS - begin] == given[u, begin:].tolist()


def test_a_released_table_off_a_grid(tmp_path):
    """Would catch locations that are not the nearest, and rows that are not paired one by one."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    points = pf.Points.from_latlon(35 + rng.random(12) / 50, 139 + rng.random(12) / 50)
    m = pf.KRR(pf.PolicyGraph.from_edges(points, [(k, k + 1) for k in range(11)]), epsilon=1.0)
    cells = {"true": rng.integers(0, 12, 30), "released": rng.integers(0, 12, 30)}
    tables = {}
    for name, which in cells.items():
        latlon = points.latlon(which)
        tables[name] = pd.DataFrame(
            {
                "user": ["ann"] * 30,
                "time": ["2026-01-05"] * 30,
                "lat": latlon[:, 0],
                "lon": latlon[:, 1],
            }
        )
    data = data_of(
        pf.report_table(tmp_path / "p.html", m, tables["released"], tables["true"]).read_text(
            "utf-8"
        )
    )
    assert data["users"][0]["true"] == cells["true"][:12].tolist()
    assert data["users"][0]["released"] == cells["released"][:12].tolist()


# -- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine")
    found = Browser(tmp_path_factory.mktemp("profile"), executable)
    yield found
    found.close()


def shown(browser):
    """(step, user, readout, markers drawn) of the map."""
    return (
        int(browser.ask("document.querySelector('#stage').dataset.step")),
        int(browser.ask("document.querySelector('#stage').dataset.user")),
        {
            k: browser.ask(f"(document.querySelector('[data-key={k}]') || {{}}).textContent")
            for k in ("true", "released", "off", "domain_size", "guess")
        },
        browser.ask("document.querySelector('[data-layer=marks]').innerHTML"),
    )


def test_the_page_opens_without_complaint(browser, city, tmp_path):
    """Would catch a script error on any kind of report, a request to anywhere, and a page wider
    than a phone."""
    for path in all_reports(city, tmp_path):
        for width, height, dark in ((390, 844, True), (1280, 900, False)):
            browser.resize(width, height, dark=dark)
            browser.problems.clear()
            browser.open(path)
            assert (
                browser.problems == []
                and int(browser.ask("document.querySelectorAll('[data-layer] > *').length")) > 0
            )
            assert browser.ask("document.documentElement.scrollWidth") <= width
            wide = (
                "[...document.querySelectorAll('main *')].filter(e => "
                "e.getBoundingClientRect().right > innerWidth + 1"
                " && !e.closest('svg, .sr')).map(e => e.outerHTML.slice(0, 90))"
            )
            assert browser.ask(wide) == []


def test_stepping_changes_what_is_shown(browser, city, written):
    """Would catch controls that do nothing, and a readout or marker that is not of the step and
    user it names."""
    grid, truth, _, result = city
    browser.resize(1280, 900)
    browser.problems.clear()
    browser.open(written[0])
    assert browser.ask("window.hacked") is None and browser.ask("document.title") == NASTY
    before = shown(browser)
    assert before[:2] == (0, 0)
    browser.click("#next")
    after = shown(browser)
    assert after[0] == 1 and after[3] != before[3]

    def check(u, t):
        step, user, readout, _ = shown(browser)
        assert (step, user) == (t, u)
        s, z = int(truth[u, t]), int(result.released[u, t])
        assert readout["true"].startswith(
            f"row {s // COLS}, column {s % COLS} ({grid.latlon(s)[0]:.4f}, {grid.latlon(s)[1]:.4f})"
        )
        assert readout["released"].startswith(f"row {z // COLS}, column {z % COLS} ")
        assert float(readout["off"].split()[0]) == pytest.approx(
            float(grid.distance(s, z)), abs=5.1e-4
        )
        assert int(readout["domain_size"].split()[0].replace(",", "")) == result.domain_size[u, t]
        x, y = ((s % COLS) + 0.5) * 0.5, (ROWS - s // COLS - 0.5) * 0.5
        place = browser.ask(
            "['cx', 'cy'].map(a => +document.querySelector('.mark-true').getAttribute(a))"
        )
        assert place == pytest.approx([x, y])

    check(0, 1)
    browser.ask("document.querySelector('#stage').focus()")
    for key, u, t in (
        ("ArrowRight", 0, 2),
        ("End", 0, 7),
        ("ArrowLeft", 0, 6),
        ("ArrowDown", 1, 6),
        ("Home", 1, 0),
        ("ArrowUp", 0, 0),
    ):
        browser.press(key)
        check(u, t)
    browser.ask(
        "(s => { s.value = 5; s.dispatchEvent(new Event('input')); "
        "})(document.querySelector('#scrub'))"
    )
    check(0, 5)
    browser.ask(
        "(s => { s.value = 3; s.dispatchEvent(new Event('change')); "
        "})(document.querySelector('#user'))"
    )
    check(3, 5)
    assert browser.ask("document.querySelector('#user option').textContent") == NASTY
    browser.click("#prev")
    check(3, 4)
    for layer in ("belief", "possible"):
        assert browser.ask(f"document.querySelector('[data-layer={layer}]').childElementCount") > 0
        browser.click(f"[data-show={layer}]")
        assert browser.ask(f"document.querySelector('[data-layer={layer}]').childElementCount") == 0
    boxes = set()
    for view in ("trace", "near", "map"):
        browser.click(f"[value={view}]")
        boxes.add(browser.ask("document.querySelector('#stage svg').getAttribute('viewBox')"))
    assert len(boxes) == 3
    browser.ask(
        "document.querySelector('#user').value = 1, "
        "document.querySelector('#user').dispatchEvent(new Event('change'))"
    )
    browser.click("#prev")
    assert (
        shown(browser)[0] == 3
        and shown(browser)[2]["released"] == "nothing at this step"
        and shown(browser)[3] == ""
    )
    assert browser.problems == []


def test_playing_goes_on_by_itself_and_stops(browser, written):
    """Would catch a play button that does not play, or cannot be stopped."""
    browser.resize(1280, 900)
    browser.open(written[0])
    browser.click("#play")
    look = (
        "const look = () => +document.querySelector('#stage').dataset.step >= 2 ? done(true) : "
        "setTimeout(look, 50); look();"
    )
    wait = f"new Promise(done => {{ {look} }})"
    assert (
        browser.ask(wait)
        and browser.ask("document.querySelector('#play').getAttribute('aria-pressed')") == "true"
    )
    browser.click("#play")
    step = shown(browser)[0]
    assert browser.ask(
        "new Promise(done => setTimeout(() => "
        f"done(+document.querySelector('#stage').dataset.step === {step}), 900))"
    )


def test_touch(browser, written):
    """Would catch controls that need a mouse: taps on buttons, and swipes on the map."""
    browser.resize(390, 844, touch=True)
    browser.open(written[0])
    browser.tap("#next")
    assert shown(browser)[0] == 1
    browser.swipe("#stage", -120)
    assert shown(browser)[0] == 2
    browser.swipe("#stage", 120)
    assert shown(browser)[0] == 1
    all_of_them = "[...document.querySelectorAll('button, select, input[type=range]')]"
    small = f"{all_of_them}.filter(e => e.getBoundingClientRect().height < 44).length"
    assert browser.ask(small) == 0


def test_the_map_has_degrees_where_they_belong_and_zooms(browser, city, written):
    """The map had no axes. Would catch ticks that are half a cell, or a map's height, off."""
    grid = city[0]
    browser.resize(1280, 900)
    browser.open(written[0])
    browser.click("[name=view][value=map]")
    ticks = browser.ask(
        "[...document.querySelectorAll('[data-layer=axes] .tick')].map(t => t.getAttribute('d'))"
    )
    names = browser.ask(
        "[...document.querySelectorAll('[data-layer=axes] .degrees')].map(t => t.textContent)"
    )
    assert len(ticks) == len(names) >= 4 and {n[-1] for n in names} == {"N", "E"}
    lat0, lon0 = grid.latlon(0)
    a_row, a_col = grid.latlon(grid.cols)[0] - lat0, grid.latlon(1)[1] - lon0
    for d, name in zip(ticks, names, strict=True):
        x, y = map(float, re.match(r"M(\S+) (\S+?)[hv]", d).groups())
        value = float(name[:-3])
        if name[-1] == "E":  # the drawing starts at the corner, half a cell from the first middle
            assert x / 0.5 - 0.5 == pytest.approx((value - lon0) / a_col, abs=1e-6)
        else:
            assert grid.rows - y / 0.5 - 0.5 == pytest.approx((value - lat0) / a_row, abs=1e-6)
    wide = "+document.querySelector('#stage svg').getAttribute('viewBox').split(' ')[2]"
    before = browser.ask(wide)
    browser.click("#zoom-in")
    assert browser.ask(wide) == pytest.approx(before / 1.6, rel=1e-4)
    browser.click("#zoom-home")
    assert browser.ask(wide) == before and browser.problems == []


def test_outputs_on_the_whole_map_are_told_as_they_are(tmp_path):
    """The page said that outputs lie in the own component, and that the group is known."""
    m = pf.PPIM(pf.blocks(pf.Grid(9, 9), 3), epsilon=1.0, outputs="map")
    text = pf.write_report(tmp_path / "m.html", m).read_text("utf-8")
    assert "may learn in which group" in text and "knows in which group" not in text
    assert "any location of the map as output" in text and "an output there" not in text
