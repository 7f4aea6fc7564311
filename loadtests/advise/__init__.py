"""Search for the best configuration of an application, by measurement within a time budget.

`configuration` are the candidates, `target` the user's application, `asking` what it is asked,
`trial` one measurement, `prior` a guess from the first one, `search` which to measure next,
`answer` the three answers, `report` how they are told, and `prove` compares with the whole grid.
"""

from __future__ import annotations
