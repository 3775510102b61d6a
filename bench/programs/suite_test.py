"""A test suite: a slow fixture, a test that computes, and many quick ones. FIX=1 makes the fixture quick."""
import os, time
import pytest

def start_database():
    if not os.environ.get("FIX"):
        time.sleep(1.2)

@pytest.fixture(scope="session")
def database():
    start_database()
    yield {}

def checksum(rows):
    total = 0
    for row in rows:
        total = (total * 31 + row) % 1_000_003
    return total

@pytest.mark.parametrize("row", range(20))
def test_insert(database, row):
    database[row] = row
    assert database[row] == row

def test_checksum():
    assert checksum(range(3_000_000)) >= 0
