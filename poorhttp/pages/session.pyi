from poorhttp.plugins.apps.pages.session import *
