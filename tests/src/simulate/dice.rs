//! Chance that can be repeated.

use jiff::SignedDuration;

/// The same numbers for the same seed, on every machine (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of their own for each of a kind.
    pub fn of(seed: u64, number: u64) -> Self {
        let mut dice = Self(seed ^ number.wrapping_mul(0xD134_2543_DE82_EF95));
        dice.roll();
        dice
    }

    /// A number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below this one, which is not 0.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.roll() % sides.max(1)
    }

    /// Whether it happens, so many times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// A time between two numbers of milliseconds.
    pub fn millis(&mut self, from: i64, to: i64) -> SignedDuration {
        let span = u64::try_from(to - from).unwrap_or(0) + 1;
        let more = i64::try_from(self.below(span)).unwrap_or(0);
        SignedDuration::from_millis(from + more)
    }

    /// A time between two numbers of seconds; short ones are likelier.
    pub fn seconds(&mut self, from: i64, to: i64) -> SignedDuration {
        let longest = self.millis(0, (to - from) * 1000).as_millis();
        let longest = i64::try_from(longest).unwrap_or(0);
        SignedDuration::from_secs(from) + self.millis(0, longest)
    }
}
