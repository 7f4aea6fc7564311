from poorhttp.plugins.apps.dispatch.pages import *
