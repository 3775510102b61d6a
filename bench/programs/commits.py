"""Writes rows into SQLite, a transaction for each. FIX=1 does not wait for the disk."""
import os, sqlite3, tempfile

def parse_rows():
    return [(number, str(number) * 20) for number in range(150_000)]

def insert_rows(connection, rows):
    if os.environ.get("FIX"):
        connection.execute("pragma synchronous = off")
    for row in rows:
        connection.execute("insert into item values (?, ?)", row)
        connection.commit()

with tempfile.TemporaryDirectory(dir=".") as folder:
    connection = sqlite3.connect(f"{folder}/items.db")
    connection.execute("create table item (id integer, name text)")
    insert_rows(connection, parse_rows()[:1_500])
    connection.close()
