//! The one place where time comes from.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

/// Tells the time and waits.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time of day, for records and deadlines.
    fn now(&self) -> Timestamp;

    /// A time that only ever goes forward, and also while the machine sleeps or the process is frozen.
    fn elapsed(&self) -> Duration;

    /// Waits so long.
    async fn sleep(&self, how_long: Duration);
}

/// The operating system's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else is given"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(time).unwrap_or_default()
    }

    async fn sleep(&self, how_long: Duration) {
        tokio::time::sleep(how_long).await;
    }
}
