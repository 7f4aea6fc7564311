"""Statistics of measurements: medians, trends, analysis of variance.

- `results`: medians, spreads and ratios over stored records.
- `variance`: two-factor analysis of variance.
- `verdict`: ratio of two servers from paired rounds, with an exact interval; of stored runs.
- `trend`: slope of a line through points by medians (Theil-Sen).
"""
