"""A pool of processes in which one item takes longer than all others together. FIX=1 makes it as quick as the others."""
import os, time
from multiprocessing import Pool

def burn(seconds):
    end = time.process_time() + seconds
    total = 0
    while time.process_time() < end:
        for number in range(1000):
            total += number

def resize_image(number):
    burn(0.08)

def resize_panorama(number):
    burn(0.08 if os.environ.get("FIX") else 1.5)

def work(number):
    (resize_panorama if number == 5 else resize_image)(number)

if __name__ == "__main__":
    with Pool(2) as pool:
        pool.map(work, range(8), chunksize=1)
