"""`poorhttp.frameworks.django`, which INSTALLED_APPS of Django projects name."""
