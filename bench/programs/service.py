"""A web server of Flask and a client that calls it. FIX=1 makes the slow part of a request quick.

The server asks every 10 ms whether to stop: at its default of 0.5 s, the end of a run came in steps of that.
"""
import os, threading, time, urllib.request
from flask import Flask
from werkzeug.serving import make_server

app = Flask(__name__)

def query_stock():
    time.sleep(0.005 if os.environ.get("FIX") else 0.12)

def render_page():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        sum(range(1000))

@app.get("/")
def index():
    query_stock()
    render_page()
    return "ok"

server = make_server("127.0.0.1", 0, app)
threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
for _ in range(10):
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
server.shutdown()
