# Types of `poorhttp.pages.session`, the public name of `poorhttp.plugins.apps.pages.session`.
from poorhttp.plugins.apps.pages.session import *
