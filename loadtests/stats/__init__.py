"""Statistics.

- `results`: medians, spreads and ratios over stored records.
- `variance`: two-factor analysis of variance.
- `distribution`: Student's t and Fisher's F.
- `trend`: slope of a line through points by medians (Theil-Sen).
"""
