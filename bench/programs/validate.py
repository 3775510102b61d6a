"""An expression that backtracks. FIX=1 uses one that does not."""
import os, re, time

SLOW, QUICK = re.compile(r"^(\w+\s?)*$"), re.compile(r"^[\w\s]*$")

def load_lines():
    return ["the quick brown fox jumps over the lazy dog" for _ in range(200_000)]

def validate(line):
    return (QUICK if os.environ.get("FIX") else SLOW).match(line)

def count_words(lines):
    return sum(len(line.split()) for line in lines)

lines = load_lines()
for _ in range(3):
    validate("a" * 23 + "!")
count_words(lines)
