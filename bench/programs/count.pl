# Sums up in a loop. FIX=1 does not.
sub sum_up { my $sum = 0; for my $i (1 .. 9000000) { $sum += $i % 7; } return $sum; }
sub count_words { my $sum = 0; for my $i (1 .. 200000) { my @words = split / /, "the quick brown fox"; $sum += @words; } return $sum; }
sum_up() unless $ENV{FIX};
count_words();
