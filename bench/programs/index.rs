//! Looks words up in a list. FIX=1 looks them up in a set.
use std::collections::HashSet;

#[inline(never)]
fn count_in_list(words: &[String], list: &[String]) -> usize {
    words.iter().filter(|word| list.contains(word)).count()
}

#[inline(never)]
fn count_in_set(words: &[String], list: &[String]) -> usize {
    let set: HashSet<&String> = list.iter().collect();
    words.iter().filter(|word| set.contains(word)).count()
}

#[inline(never)]
fn read_words() -> Vec<String> {
    (0..600_000_u64).map(|number| format!("word{}", number * 7919 % 600_000)).collect()
}

fn main() {
    let words = read_words();
    let list: Vec<String> = words[..9_000].to_vec();
    let count = if std::env::var("FIX").is_ok() { count_in_set } else { count_in_list };
    println!("{}", count(&words[..20_000], &list));
}
