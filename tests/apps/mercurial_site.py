"""hgweb over the repositories of the folder REPOSITORIES, with archives."""

from __future__ import annotations

import os

from mercurial.hgweb import hgweb

application = hgweb(os.fsencode(f"{os.environ['REPOSITORIES']}/hgweb.conf"))
