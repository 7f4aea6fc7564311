#!/bin/sh
# What a program is told about a request: meta-variables, arguments, body (RFC 3875 section 4).

echo "Content-Type: text/plain; charset=utf-8"
echo

for name in AUTH_TYPE CONTENT_LENGTH CONTENT_TYPE GATEWAY_INTERFACE PATH_INFO PATH_TRANSLATED QUERY_STRING \
    REMOTE_ADDR REMOTE_HOST REMOTE_USER REQUEST_METHOD SCRIPT_NAME SERVER_NAME SERVER_PORT SERVER_PROTOCOL \
    SERVER_SOFTWARE; do
    eval "echo \"$name=\${$name-(not set)}\""
done

echo
echo "arguments: $#"
echo "folder: $(pwd)"
echo "octets of the body: $(wc -c)"
echo
echo "Everything in the environment:"
env | sort
