# Types of `poorhttp.pages.response`, the public name of `poorhttp.plugins.apps.pages.response`.
from poorhttp.plugins.apps.pages.response import *
