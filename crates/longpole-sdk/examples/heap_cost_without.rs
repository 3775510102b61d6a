//! The work of `heap_cost` with the system's allocator alone. `heap_cost` runs it.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

mod heap_work;

fn main() {
    heap_work::run(&std::env::args().nth(1).unwrap_or_default());
}
