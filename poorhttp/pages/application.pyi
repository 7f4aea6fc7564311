from poorhttp.plugins.apps.pages.application import *
