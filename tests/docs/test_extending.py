"""The page on extending: its module on the path, used by name on the command line."""

import re
import shlex
import sys
from string import Template

import pytest

import pglp_fast as pf
from cases import ROOT, large
from pglp_fast.cli import main
from pglp_fast.mechanisms.registry import MECHANISMS, find, load

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
MODULE, *EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
COMMANDS = re.search(r"^```sh\n(.*?)^```", PAGE, flags=re.M | re.S)[1].splitlines()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)


@large
def test_commands(mine, tmp_path, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    exec(f"from mine import *\nimport numpy as np\nimport pglp_fast as pf\n{EXAMPLES[-1]}", {})
    exports = [line.removeprefix("export ") for line in COMMANDS if line.startswith("export ")]
    values = dict(word.split("=", 1) for line in exports for word in shlex.split(line))
    run = [line for line in COMMANDS if line not in {f"export {e}" for e in exports}]
    assert len(run) >= 8
    for line in run:
        program, *arguments = shlex.split(Template(line).substitute(values))
        assert program == "pglp-fast"
        assert main(arguments) == 0, (line, capsys.readouterr().err)
    assert "truncated geometric" in (tmp_path / "steps.html").read_text(encoding="utf-8")


def test_the_class_keeps_its_promise(mine):
    made = load("mine:Geometric")
    G = pf.neighbours8(pf.Grid(4, 5))
    for epsilon in (0.1, 1.0, 5.0):
        for reach in (1, 2, 9):
            certificate = pf.certify(made(G, epsilon=epsilon, reach=reach))
            assert certificate.ok
            assert certificate.mixed <= 1e-8


def test_it_is_named_wherever_a_mechanism_is(mine):
    """By module and class: in traces, in a plan, and among those that are compared."""
    grid = pf.Grid.from_bounds(lat=(35.68, 35.70), lon=(139.60, 139.63), cell_km=0.5)
    G, where = pf.neighbours8(grid), "mine:Geometric"
    M = pf.MobilityModel.fit(grid, [[0, 1, 2, 7]], unseen="neighbours8")
    named = pf.TraceReleaser(G, M, epsilon=1.0, mechanism=where, rng=1).run([[0, 1, 2]])
    given = pf.TraceReleaser(G, M, epsilon=1.0, mechanism=find(where), rng=1).run([[0, 1, 2]])
    assert (named.released == given.released).all()
    plan = pf.Plan(grid=grid, policy=G, epsilon=1.0, mechanism=where, seed=1)
    assert plan.for_rows().label == "truncated geometric"
    advice = pf.advise(
        [0, 1, 7], grid=grid, policies={"steps": G}, epsilons=[1.0], mechanisms=["krr", where]
    )
    assert [row.mechanism for row in advice.rows] == ["krr", where]
    assert ("steps", "truncated geometric") in advice.curves()[1]
    with pytest.raises(pf.InvalidParameter, match="no:Thing"):
        pf.advise([0], grid=grid, policies={"": G}, epsilons=[1.0], mechanisms=["no:Thing"])


def test_what_is_not_found_is_said(mine):
    with pytest.raises(pf.InvalidParameter, match=r"nothing:Here.* is not found: No module"):
        load("nothing:Here")
    with pytest.raises(pf.InvalidParameter, match="has no attribute 'Other'"):
        load("mine:Other")
    with pytest.raises(pf.InvalidParameter, match="mine:street is not a mechanism"):
        load("mine:street")


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_registry_and_the_class_agree(name):
    assert find(name).name == name
    assert find(find(name)) is find(name)


def test_a_subclass_is_not_taken_for_its_base():
    class Mine(pf.PPIM):
        pass

    assert (Mine.name, Mine.label) == ("Mine", "Mine")
    assert find(Mine) is Mine


def test_options_and_answers_that_are_wrong():
    G = pf.blocks(pf.Grid(3, 3), 3)
    M = pf.MobilityModel.fit(G.locations, [[0, 1, 2]])

    class Half(pf.Mechanism):
        def log_probabilities(self, component):
            return pf.KRR(G, epsilon=self.epsilon).matrix(0, log=True)[1] - 0.5

    class Flat(pf.Mechanism):
        def log_probabilities(self, component):
            return [0.0]

    with pytest.raises(pf.PGLPError, match="do not sum to 1: nothing is released"):
        Half(G, epsilon=1.0).release(0)
    with pytest.raises(pf.PGLPError, match=r"gave shape \(1,\) for a component of 9 locations"):
        Flat(G, epsilon=1.0).release(0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'reach'"):
        Flat(G, epsilon=1.0, reach=2)
    with pytest.raises(pf.InvalidParameter, match="Flat knows calibration='component' only"):
        Flat(G, epsilon=1.0, calibration="graph")
    with pytest.raises(pf.InvalidParameter, match="adds no noise"):
        Flat(G, epsilon=1.0, sampler="geometric")
    with pytest.raises(pf.InvalidParameter, match="mechanism='Flat' has no option 'reach'"):
        pf.TraceReleaser(G, M, epsilon=1.0, mechanism=Flat, options={"reach": 2})
    with pytest.raises(pf.InvalidParameter, match="use remap='euclidean'"):
        pf.TraceReleaser(G, M, epsilon=1.0, mechanism=pf.Remapped)


def test_a_noise_polygon_of_ones_own():
    """Twice the sensitivity hull: sound, by tables and by geometry, and in traces by tables."""
    from pglp_fast.mechanisms.k_norm import KNorm

    class Twice(KNorm):
        def noise_polygon(self, hull):
            return 2.0 * hull

    G = pf.blocks(pf.Grid(6, 6), 3).with_edges([(0, 5)])
    for sampler in ("table", "geometric"):
        m = Twice(G, epsilon=1.0, sampler=sampler)
        assert pf.certify(m).ok
        half = pf.PPIM(G, epsilon=0.5, sampler=sampler)
        assert m.matrix(0)[1] == pytest.approx(half.matrix(0)[1], rel=1e-9)
    M = pf.MobilityModel.fit(G.locations, [[0, 1, 2, 8]], unseen="neighbours8")
    R = pf.TraceReleaser(G, M, epsilon=1.0, mechanism=Twice, rng=1).run([[0, 1, 2], [8, 8, 9]])
    assert (R.released >= 0).all()
