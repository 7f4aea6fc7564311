"""Figures of the study of 2005: Uniserve 0.9.9 (REBOL) and Apache 1.3.27."""

from __future__ import annotations

ML370 = "Pentium III 1.27 GHz"
BLADE = "4 × Xeon MP 2.2 GHz"


_U, _A, _M = "Uniserve 0.9.9", "Apache 1.3.27", "Apache 1.3.27 + Magic! 1.2"
LOOPS = (
    (_U, "L1", ML370, 4.669466, 0.00467414, 0.00312747, 0.4835456),
    (_U, "L2", ML370, 24.72552, 0.004946, 0.003137606, 2.3763556),
    (_U, "L3", ML370, 4.218294, 0.00422224, 0.00310628, 0.012638),
    (_U, "L1", BLADE, 2.7087, 0.002708, 0.0021, 0.0060),
    (_U, "L2", BLADE, 13.788, 0.00276, 0.0021, 0.0064),
    (_U, "L3", BLADE, 2.7539, 0.00276, 0.0022, 0.0060),
    (_U, "R1 LAN", ML370, 3.5265, 0.0035, 0.00279, 0.01031),
    (_U, "R2 LAN", ML370, 17.468, 0.00349, 0.00277, 0.0136),
    (_U, "R3 LAN", ML370, 3.5118, 0.0035, 0.00279, 0.01248),
    (_U, "R1 LAN", BLADE, 3.864, 0.00386, 0.003, 0.0114),
    (_U, "R2 LAN", BLADE, 20.277, 0.0040, 0.00296, 0.0119),
    (_U, "R3 LAN", BLADE, 4.15, 0.0041, 0.003, 0.0113),
    (_A, "R1 LAN", ML370, 2.6, 0.0026, None, None),
    (_A, "R2 LAN", ML370, 12.2, 0.0024, None, None),
    (_A, "R3 LAN", ML370, 2.0, 0.002, None, None),
    (_M, "R1 LAN", ML370, 39.0, 0.039, None, None),
    (_M, "R2 LAN", ML370, 196.0, 0.039, None, None),
    (_M, "R3 LAN", ML370, 39.0, 0.039, None, None),
    (_U, "R1 outside", ML370, 67.8692, 0.0679, 0.0542, 0.9281),
    (_U, "R2 outside", ML370, 332.05, 0.0664, 0.0515, 1.2150),
    (_U, "R3 outside", ML370, 68.1262, 0.0682, 0.0492, 2.0770),
)
"""The mean row of each loop: server, loop, machine of the server, all requests together, mean,
shortest, longest; seconds, None where it had none."""

PHASES = (
    ("M1", 0.99, 3.8, 1.6, 93, 260, 263),
    ("M1 + M2", 1.8, 2.1, None, 63, 853, 473),
    ("M1 + M2 + M3", 19, 2.2, None, 88, 8901, 468),
    ("M2 + M3", 0.6, 2.4, None, 52, 147, 245),
    ("M3", 528, 109, 101, 335, 4839, 9.1),
)
"""Of R99 with three injectors, of which the third was outside of the local network: those that
were active, seconds; mean, shortest and longest milliseconds; requests, and requests per second."""

POWER = (
    ("1", 15.8, 3.15, 2.59, 7.59, 5_000.0, 317.5),
    ("2", 19.37, 1.94, 0.8, 10.7, 10_000.0, 515.4),
    ("3", 23.8, 1.58, 0.87, 49.6, 15_000.0, 630.0),
    ("4", 38.8, 1.94, 0.87, 6.8, 20_000.0, 515.5),
    ("5", 42.9, 1.79, 0.87, 19.8, 25_000.0, 558.6),
    ("6", 47.2, 1.57, 0.87, 9.4, 30_000.0, 636.9),
    ("9", 71.6, 1.59, 0.87, 21.9, 45_000.0, 628.9),
    ("12", 94.8, 1.58, 0.87, 22.8, 60_000.0, 633.0),
)
"""The same of R99 with a number of injectors at once, 5,000 requests each."""

RESOURCES = (
    (_U, "45", "2–3", "17", 2700, "2 × 2,500,000"),
    (_A, "4", "3–4", "13", 4000, "3,700,000"),
)
"""Of R2 in the local network: server; user, memory and system in per cent; packets and bits a
second, as printed there ("2 2500 000"); its text has 2.5 MB/s, 5 % of the bandwidth."""
