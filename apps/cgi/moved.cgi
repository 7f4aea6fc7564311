#!/bin/sh
# The server answers with what stands there: a local redirect (RFC 3875 section 6.2.2).

printf 'Location: %s/environment.cgi?moved\n\n' "${SCRIPT_NAME%/moved.cgi}"
