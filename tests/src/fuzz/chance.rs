//! Inputs that are made by chance from others.

use crate::simulate::Dice;

/// What makes readers stumble: ends of ranges, brackets, escapes, and what a text may not hold.
const WORDS: [&[u8]; 22] = [
    b"null",
    b"true",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"1e999",
    b"\"\"",
    b"{}",
    b"[]",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    b"\"next\": \"http://other.example.org/v1/nodes?marker=x\"",
    b"[[[[[[[[",
    b"}}}}",
    b",",
    b"\r\n",
    b"&a *a",
    b"9999-12-31T23:59:59Z",
    b"-009999-01-01T00:00:00Z",
    b"00000000-0000-0000-0000-000000000000",
    b"\xe2\x80\xae",
];

/// One of the seeds, changed in one to eight places.
pub fn changed(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let below = |dice: &mut Dice, n: usize| usize::try_from(dice.below(n as u64)).unwrap_or(0);
    let Some(seed) = seeds.get(below(dice, seeds.len())) else {
        return Vec::new();
    };
    let mut input = seed.clone();
    for _ in 0..=dice.below(8) {
        let from = below(dice, input.len() + 1);
        let to = input.len().min(from + below(dice, 40));
        match dice.below(6) {
            0 => input.truncate(from),
            1 => drop(input.drain(from..to)),
            2 => {
                let part = input[from..to].to_vec();
                drop(input.splice(from..from, part));
            }
            3 => {
                let word = WORDS[below(dice, WORDS.len())];
                drop(input.splice(from..to, word.iter().copied()));
            }
            4 => {
                let word = WORDS[below(dice, WORDS.len())];
                drop(input.splice(from..from, word.iter().copied()));
            }
            _ => {
                if let Some(byte) = input.get_mut(from) {
                    *byte ^= 1 << dice.below(8);
                }
            }
        }
    }
    input
}
