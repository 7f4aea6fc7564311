#!/bin/sh
# Stands for its folder.

cat <<'PAGE'
Content-Type: text/html; charset=utf-8

<!DOCTYPE html>
<title>Programs</title>
<ul>
<li><a href="hello.cgi">hello.cgi</a>: one line, from a shell
<li><a href="environment.cgi/behind/it?query">environment.cgi</a>: what a program is told
<li><a href="guestbook.pl">guestbook.pl</a>: a form, in Perl
<li><a href="digest.py">digest.py</a>: the digest of a body, in Python
<li><a href="clock.cgi">clock.cgi</a>: five lines in five seconds
<li><a href="moved.cgi">moved.cgi</a>: what stands elsewhere on this server
</ul>
PAGE
