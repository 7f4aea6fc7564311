"""Analysis of variance: against tables, textbook examples and the study of 2001."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loadtests.stats.variance import Analysis, Source, analyse
from loadtests.studies import originals

# Three caches (columns) and five programs: Jain, example 21.1.
CACHES = ((54, 55, 106), (60, 60, 123), (43, 43, 120), (49, 52, 111), (49, 50, 108))

# Length of odontoblasts (Crampton 1947, the data set ToothGrowth of R) by supplement (orange juice,
# ascorbic acid) and dose (0.5, 1 and 2 mg). R's aov(len ~ supp * factor(dose)) gives the table.
TEETH = (
    (
        (15.2, 21.5, 17.6, 9.7, 14.5, 10.0, 8.2, 9.4, 16.5, 9.7),
        (19.7, 23.3, 23.6, 26.4, 20.0, 25.2, 25.8, 21.2, 14.5, 27.3),
        (25.5, 26.4, 22.4, 24.5, 24.8, 30.9, 26.4, 27.3, 29.4, 23.0),
    ),
    (
        (4.2, 11.5, 7.3, 5.8, 6.4, 10.0, 11.2, 11.2, 5.2, 7.0),
        (16.5, 16.5, 15.2, 17.3, 22.5, 17.3, 13.6, 14.5, 18.8, 15.5),
        (23.6, 18.5, 33.9, 25.5, 26.4, 32.5, 26.7, 21.5, 23.3, 29.5),
    ),
)


def sources(analysis: Analysis) -> dict[str, Source]:
    return {source.name: source for source in analysis.sources()}


class TestTheStudyOf2001:
    """To the last digit that it prints."""

    rps = originals.analysed(originals.RPS)

    def test_its_levels_are_exchanged(self) -> None:
        """An effect of a client counts once for each of the four servers, and not three times."""
        by_hand = 4 * sum(effect**2 for effect in (11.523, -28.87725, 17.35425))
        assert self.rps.ssa == pytest.approx(by_hand)
        assert self.rps.ssa == pytest.approx(5071.38, abs=0.01)
        assert self.rps.ssb == pytest.approx(3230.05, abs=0.01)
        assert self.rps.sse == pytest.approx(1590.59, abs=0.01)
        shares = {name: round(100 * source.share, 2) for name, source in sources(self.rps).items()}
        assert shares == {"A": 51.27, "B": 32.65, "error": 16.08}
        # Nothing but this makes the residuals and the sum of their squares agree.
        residuals = sum(value**2 for row in self.rps.interactions for value in row)
        assert residuals == pytest.approx(self.rps.sse)


class TestWithoutReplication:
    analysis = analyse([[[float(value)] for value in row] for row in CACHES])

    def test_sums_of_a_textbook(self) -> None:
        assert self.analysis.mean == pytest.approx(72.2)
        assert self.analysis.b_effects == pytest.approx((-21.2, -20.2, 41.4))
        found = (self.analysis.ssb, self.analysis.ssa, self.analysis.sse)
        assert found == pytest.approx((12857.2, 308.4, 236.8))
        assert self.analysis.sst + 15 * self.analysis.mean**2 == pytest.approx(91595)
        assert not self.analysis.replicated
        assert self.analysis.ssab == 0

    def test_table_of_a_textbook(self) -> None:
        table = sources(self.analysis)
        assert set(table) == {"A", "B", "error"}
        assert [table[name].freedom for name in ("A", "B", "error")] == [4, 2, 8]
        assert table["error"].mean_square == pytest.approx(29.6)
        assert table["B"].f == pytest.approx(217.2, abs=0.05)
        assert table["A"].f == pytest.approx(2.6, abs=0.05)

    def test_intervals_of_a_textbook(self) -> None:
        """Standard deviations: 1.4 of the mean, 2.0 of a cache, 2.8 of a program."""
        t = 1.860
        mean = self.analysis.interval(self.analysis.mean, 1, 0.90)
        cache = self.analysis.interval(self.analysis.b_effects[2], 2, 0.90)
        program = self.analysis.interval(self.analysis.a_effects[0], 4, 0.90)
        assert (mean.low, mean.high) == pytest.approx(
            (72.2 - 1.405 * t, 72.2 + 1.405 * t), abs=0.01
        )
        assert (cache.low, cache.high) == pytest.approx(
            (41.4 - 1.987 * t, 41.4 + 1.987 * t), abs=0.01
        )
        assert cache.significant
        assert program.high is not None
        assert program.high - program.value == pytest.approx(2.810 * t, abs=0.01)
        assert not program.significant


class TestWithReplication:
    analysis = analyse(TEETH)

    def test_table_of_a_statistics_program(self) -> None:
        table = sources(self.analysis)
        found = [table[name].squares for name in ("A", "B", "AB", "error")]
        assert found == pytest.approx([205.35, 2426.434, 108.319, 712.106], abs=5e-4)
        assert [table[name].freedom for name in ("A", "B", "AB", "error")] == [1, 2, 2, 54]
        found = [table[name].f or 0 for name in ("A", "B", "AB")]
        assert found == pytest.approx([15.572, 92.000, 4.107], abs=5e-4)
        assert table["A"].probability == pytest.approx(0.000231, abs=5e-7)
        assert table["AB"].probability == pytest.approx(0.021860, abs=5e-7)
        assert sum(source.share for source in table.values()) == pytest.approx(1)
        lengths = [length for row in TEETH for cell in row for length in cell]
        squares = sum(length**2 for length in lengths)
        assert squares - 60 * self.analysis.mean**2 == pytest.approx(self.analysis.sst)

    def test_intervals_of_shares(self) -> None:
        shares = self.analysis.share_intervals(0.90)
        assert shares == self.analysis.share_intervals(0.90)
        wider = self.analysis.share_intervals(0.95)
        for name, source in sources(self.analysis).items():
            low, high = shares[name].low, shares[name].high
            assert low is not None
            assert high is not None
            assert 0 <= low < source.share < high <= 1
            assert high - low < (wider[name].high or 0) - (wider[name].low or 0)
        # The dose explains most, whatever the errors.
        assert (shares["B"].low or 0) > 0.5

    def test_no_errors(self) -> None:
        table = sources(analyse([[[1.0, 1.0], [2.0, 2.0]], [[3.0, 3.0], [9.0, 9.0]]]))
        assert table["error"].squares == 0
        assert table["A"].f is None
        assert table["AB"].share > 0

    def test_nothing_varies(self) -> None:
        analysis = analyse([[[5.0, 5.0], [5.0, 5.0]]])
        assert [source.share for source in analysis.sources()] == [0, 0, 0, 0]
        assert analysis.share_intervals(0.90)["B"].value == 0


class TestLogarithms:
    cells: Sequence[Sequence[Sequence[float]]] = [
        [[factor * other] for other in (1.0, 10.0, 1000.0)] for factor in (2.0, 20.0)
    ]

    def test_factors_that_multiply_add_up(self) -> None:
        """What multiplies is all interaction without them, and none with them."""
        assert sources(analyse(self.cells))["error"].share > 0.2
        with_it = analyse(self.cells, log=True)
        assert sources(with_it)["error"].share == pytest.approx(0, abs=1e-12)
        assert with_it.a_effects == pytest.approx((-0.5, 0.5))

    def test_nothing_has_no_logarithm(self) -> None:
        with pytest.raises(ValueError, match="no logarithm"):
            analyse([[[0.0], [1.0]]], log=True)


@pytest.mark.parametrize("cells", [[], [[]], [[[]]]])
def test_nothing(cells: list[list[list[float]]]) -> None:
    with pytest.raises(ValueError, match="nothing to analyse"):
        analyse(cells)


@pytest.mark.parametrize("cells", [[[[1.0], [2.0]], [[3.0]]], [[[1.0, 2.0], [3.0]]]])
def test_a_hole(cells: list[list[list[float]]]) -> None:
    with pytest.raises(ValueError, match="not all equally many"):
        analyse(cells)
