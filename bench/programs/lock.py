"""Workers that share a lock; one holds it while it waits for a disk. FIX=1 waits before it takes the lock."""
import os, threading, time

lock = threading.Lock()
totals = {}

def flush_to_disk():
    time.sleep(0.25)

def prepare(number):
    time.sleep(0.05)

def flusher():
    for _ in range(5):
        if os.environ.get("FIX"):
            with lock:
                pass
        else:
            with lock:
                flush_to_disk()
        time.sleep(0.001)

def worker(number):
    for _ in range(5):
        prepare(number)
        with lock:
            totals[number] = totals.get(number, 0) + 1

threads = [threading.Thread(target=flusher), *(threading.Thread(target=worker, args=(number,)) for number in range(3))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
