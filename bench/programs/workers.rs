//! A producer that reads slowly feeds workers through a channel. FIX=1 reads quickly.
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

#[inline(never)]
fn read_block(slow: bool) -> Vec<u8> {
    std::thread::sleep(Duration::from_millis(if slow { 30 } else { 1 }));
    vec![1; 4096]
}

#[inline(never)]
fn digest(block: &[u8]) -> u64 {
    let mut sum = 0_u64;
    for _ in 0..1_000 {
        for byte in block {
            sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
        }
    }
    std::hint::black_box(sum)
}

fn main() {
    let slow = std::env::var("FIX").is_err();
    let (send, receive) = mpsc::channel::<Vec<u8>>();
    let receive = Arc::new(Mutex::new(receive));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let receive = Arc::clone(&receive);
            std::thread::spawn(move || {
                loop {
                    let block = receive.lock().unwrap().recv();
                    let Ok(block) = block else { return };
                    digest(&block);
                }
            })
        })
        .collect();
    for _ in 0..40 {
        send.send(read_block(slow)).unwrap();
    }
    drop(send);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}
