# Types of `poorhttp.pages`, the public name of `poorhttp.plugins.apps.pages`.
