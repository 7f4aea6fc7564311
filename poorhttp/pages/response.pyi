from poorhttp.plugins.apps.pages.response import *
