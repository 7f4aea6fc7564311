# Types of `poorhttp.dispatch.pages`, the public name of `poorhttp.plugins.apps.dispatch.pages`.
from poorhttp.plugins.apps.dispatch.pages import *
