#!/bin/sh
# One line each second: `curl -N localhost:8080/clock.cgi`. A client that leaves ends it.

printf 'Content-Type: text/plain\n\n'
for second in 1 2 3 4 5; do
    date -u +%H:%M:%S
    sleep 1
done
