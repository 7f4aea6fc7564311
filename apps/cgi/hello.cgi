#!/bin/sh
printf 'Content-Type: text/plain\n\nHello, world!\n'
