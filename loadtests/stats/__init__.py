"""Statistics of measurements: medians, trends, analysis of variance.

- `results`: medians, spreads and ratios over stored records.
- `variance`: two-factor analysis of variance.
- `trend`: slope of a line through points by medians (Theil-Sen).
"""
