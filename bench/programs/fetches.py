"""A pool of threads that wait for others; one waits long. FIX=1 makes that one as quick as the others."""
import os, time
from concurrent.futures import ThreadPoolExecutor

def fetch_page(number):
    time.sleep(0.1)
    return number

def fetch_archive(number):
    time.sleep(0.1 if os.environ.get("FIX") else 1.3)
    return number

def render(pages):
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        "".join(str(page) for page in pages)

with ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(fetch_archive if number == 3 else fetch_page, number) for number in range(12)]
    pages = [job.result() for job in jobs]
render(pages)
