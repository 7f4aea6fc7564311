# Types of `poorhttp.dispatch`, the public name of `poorhttp.plugins.apps.dispatch`.
from poorhttp.plugins.apps.dispatch.application import Application as Application
from poorhttp.plugins.apps.dispatch.form import Field as Field
from poorhttp.plugins.apps.dispatch.form import Fields as Fields
from poorhttp.plugins.apps.dispatch.form import FieldStorage as FieldStorage
from poorhttp.plugins.apps.dispatch.form import FormError as FormError
from poorhttp.plugins.apps.dispatch.headers import Headers as Headers
from poorhttp.plugins.apps.dispatch.levels import *
from poorhttp.plugins.apps.dispatch.methods import *
from poorhttp.plugins.apps.dispatch.request import Request as Request
from poorhttp.plugins.apps.dispatch.request import redirect as redirect
from poorhttp.plugins.apps.dispatch.server_return import SERVER_RETURN as SERVER_RETURN
from poorhttp.plugins.apps.dispatch.status import *
