"""What tests are written with, beside `tests.testkit`."""
