#!/usr/bin/perl
# Prints the environment of a CGI program, as report.sh does, in Perl.
use strict;
use warnings;

my @names = qw(
    SERVER_SOFTWARE SERVER_NAME GATEWAY_INTERFACE SERVER_PROTOCOL SERVER_PORT REQUEST_METHOD HTTP_ACCEPT PATH_INFO
    PATH_TRANSLATED SCRIPT_NAME QUERY_STRING REMOTE_HOST REMOTE_ADDR REMOTE_USER AUTH_TYPE CONTENT_TYPE CONTENT_LENGTH
);

print "Content-Type: text/plain; charset=us-ascii\n\n";
print "What this program was told:\n\n";
print scalar(@ARGV), " arguments: @ARGV\n\n";
print "$_ = ", $ENV{$_} // "", "\n" for @names;
