# Types of `poorhttp.pages.application`, the public name of `poorhttp.plugins.apps.pages`.
from poorhttp.plugins.apps.pages.application import *
