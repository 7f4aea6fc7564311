#!/usr/bin/perl
# A form, in Perl without modules that have to be installed: name and text come back in a page.

use strict;
use warnings;

sub escape {
    my ($text) = @_;
    my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;');
    $text =~ s/([&<>"])/$entity{$1}/g;
    return $text;
}

my $form = $ENV{QUERY_STRING} // '';
if ($ENV{REQUEST_METHOD} eq 'POST') {
    read STDIN, $form, $ENV{CONTENT_LENGTH} // 0;
}
my %field;
for my $pair (split /&/, $form) {
    $pair =~ tr/+/ /;
    my ($name, $value) = map { s/%([0-9A-Fa-f]{2})/chr hex $1/ger } split /=/, $pair, 2;
    $field{$name} = $value if defined $value;
}

my $name = escape($field{name} // '');
my $text = escape($field{text} // '');
print "Content-Type: text/html; charset=utf-8\n\n";
print "<!DOCTYPE html>\n<title>Guest book</title>\n";
print "<p><b>$name</b> writes: $text</p>\n" if $name ne '';
print <<'PAGE';
<form method="post">
<p><label>Name <input name="name"></label></p>
<p><label>Text <textarea name="text"></textarea></label></p>
<p><button>Write</button></p>
</form>
PAGE
