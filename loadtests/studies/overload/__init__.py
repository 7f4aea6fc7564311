"""The study `overload`: more requests than a server can answer, and short ones beside long ones.

- `open_load`: requests at multiples of the highest rate, from clients that give up.
- `fair`: short requests beside threads that compute.
- `study`: the class, its servers and steps.
"""
