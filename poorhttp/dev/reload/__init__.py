"""Serving the new version when a file of the project was saved.

In the main process a `succession` has one `version` follow another. What all of them share is their
`lineage`, and each is forked from its `cradle`.

What has been saved: the `watcher` is a process, and `lookout` is what it does; the `project` says
what is the user's own (`glob`), the `tree` is what it was like before, `reach` is where the system
does not tell.

What need not be imported again: the `keeper` is a process, and `warmth` is what it has imported.
`scan` reads what that may be, `origins` and `guard` keep the project out, a `scout` tries each
module before, with `traces` of what it leaves, in `silence`.

What must be: a version loads the project `fresh`; `loaded` is what it has, and `whereabouts` is
where it is when that takes long.
"""
