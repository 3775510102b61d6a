//! What both programs of `heap_cost` do: little else than allocating.

use std::collections::BTreeMap;
use std::hint::black_box;

/// Frames between `main` and the work: an async server has 40 to 80.
const DEPTH: usize = 30;

type Work = fn(&mut Random);

/// The workloads by name.
pub(crate) const WORK: [(&str, Work); 3] = [("blocks", blocks), ("documents", documents), ("buffers", buffers)];

/// Does the work of this name, and prints its processor time in nanoseconds and the bytes it allocated.
pub(crate) fn run(name: &str) {
    let work = WORK.iter().find(|(known, _)| *known == name).map(|(_, work)| work);
    let Some(work) = work else { return };
    let before = cpu_nanos();
    deep(DEPTH, &|| work(&mut Random(88_172_645_463_325_252)));
    println!("{}", cpu_nanos() - before);
}

#[inline(never)]
fn deep(left: usize, work: &dyn Fn()) {
    if left == 0 {
        work()
    } else {
        deep(left - 1, work)
    }
    // No tail call: the frame stays.
    black_box(left);
}

/// Nothing but pairs of `malloc` and `free`, 16 to 512 bytes, of 10,000 blocks in use.
fn blocks(random: &mut Random) {
    let mut kept: Vec<Vec<u8>> = (0..10_000).map(|_| Vec::new()).collect();
    for _ in 0..20_000_000 {
        let place = random.below(kept.len());
        let mut block = Vec::with_capacity(16 + random.below(496));
        block.push(1);
        kept[place] = block;
    }
    black_box(kept);
}

/// Small maps with texts, as a parser makes them: made, read once, and dropped; one in a hundred stays.
fn documents(random: &mut Random) {
    let mut kept = Vec::new();
    for number in 0..150_000 {
        let mut document: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for field in 0..12 {
            let values = (0..random.below(6)).map(|value| format!("value {value} of field {field} in document {number}"));
            document.insert(format!("field-{}", random.below(1_000)), values.collect());
        }
        black_box(document.values().flatten().map(String::len).sum::<usize>());
        if number % 100 == 0 {
            kept.push(document);
        }
    }
    black_box(kept);
}

/// Buffers that grow to 256 KiB by pushing, as a server reads requests.
fn buffers(random: &mut Random) {
    let piece = [7_u8; 1_400];
    for _ in 0..30_000 {
        let (mut buffer, end) = (Vec::new(), 4_096 + random.below(256 << 10));
        while buffer.len() < end {
            buffer.extend_from_slice(&piece);
        }
        black_box(buffer);
    }
}

/// xorshift: what is random costs the same in both programs.
pub(crate) struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Processor time of this thread, by the kernel's scheduler.
fn cpu_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}
