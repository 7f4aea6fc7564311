"""The study `power` of 2005: throughput by number of injectors, one after the other and at once.

- `study`: three injectors one after the other, then 1 to 12 at once; the report.
- `injectors`: processes of our own client, or workers of Locust; phases of their activity.
"""
