"""Tasks of asyncio: one waits long. FIX=1 makes that one as quick as the others."""
import asyncio, os, time

async def ask_cache(number):
    await asyncio.sleep(0.1)

async def ask_ledger():
    await asyncio.sleep(0.1 if os.environ.get("FIX") else 1.2)

def render():
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        sum(range(1000))

async def main():
    await asyncio.gather(ask_ledger(), *(ask_cache(number) for number in range(5)))
    render()

asyncio.run(main())
