/** Threads that update orders under one lock, which one of them holds while it waits. FIX=1 waits outside of it. */
public class Orders {
    static final Object lock = new Object();
    static long total;
    static final boolean FIX = System.getenv("FIX") != null;

    static void callBank() throws Exception { Thread.sleep(200); }

    static void price(int number) {
        long end = System.nanoTime() + 20_000_000L;
        while (System.nanoTime() < end) total += number;
    }

    static void update(int number) throws Exception {
        if (!FIX) {
            synchronized (lock) { callBank(); }
        }
        price(number);
    }

    public static void main(String[] arguments) throws Exception {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] = new Thread(() -> {
                try {
                    for (int j = 0; j < 2; j++) update(number);
                } catch (Exception e) { throw new RuntimeException(e); }
            });
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
