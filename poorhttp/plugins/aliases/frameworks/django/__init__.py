"""`poorhttp.frameworks.django`, an entry of INSTALLED_APPS in Django projects."""
