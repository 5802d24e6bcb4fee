//! What is gathered once for all who ask at about the same time, so that readers never multiply the requests to other services.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;
use unprovision::cloud::Clock;

use crate::problem::Problem;

/// Something that was gathered, and when.
#[derive(Debug)]
pub(crate) struct Gathered<T> {
    pub(crate) seen_at: Timestamp,
    pub(crate) what: T,
}

type Result<T> = std::result::Result<Arc<Gathered<T>>, Problem>;

/// The last gathering; whoever comes while it is under way waits for it.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    last: Mutex<Option<(Duration, Result<T>)>>,
    fresh_for: Duration,
}

impl<T> Flight<T> {
    pub(crate) fn new(fresh_for: Duration) -> Self {
        Self {
            last: Mutex::new(None),
            fresh_for,
        }
    }

    /// What was gathered last, if that is fresh; a failure is kept as long, or everybody who waited would try in turn.
    pub(crate) async fn get(
        &self,
        clock: &dyn Clock,
        gather: impl Future<Output = std::result::Result<T, Problem>>,
    ) -> Result<T> {
        let mut last = self.last.lock().await;
        if let Some((at, result)) = &*last
            && clock.elapsed().saturating_sub(*at) < self.fresh_for
        {
            return result.clone();
        }
        let seen_at = clock.now();
        let gathered = gather.await;
        let result = gathered.map(|what| Arc::new(Gathered { seen_at, what }));
        *last = Some((clock.elapsed(), result.clone()));
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use unprovision::cloud::SystemClock;

    use super::*;

    #[tokio::test]
    async fn many_who_ask_at_once_cost_one_gathering_also_where_it_fails() {
        for fails in [false, true] {
            let (flight, gatherings) = (Flight::new(Duration::from_secs(3600)), AtomicUsize::new(0));
            let gather = || async {
                tokio::task::yield_now().await;
                match (gatherings.fetch_add(1, Ordering::Relaxed), fails) {
                    (count, false) => Ok(count),
                    (_, true) => Err(Problem::unavailable("Ironic is away")),
                }
            };
            let all = (0..50).map(|_| flight.get(&SystemClock, gather()));
            let all = futures::future::join_all(all).await;
            assert_eq!(
                all.iter().filter(|one| one.is_ok()).count(),
                if fails { 0 } else { 50 }
            );
            assert_eq!(gatherings.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test]
    async fn what_is_old_is_gathered_anew() {
        let (flight, gatherings) = (Flight::new(Duration::ZERO), AtomicUsize::new(0));
        for expected in 0..3 {
            let gather = async { Ok(gatherings.fetch_add(1, Ordering::Relaxed)) };
            assert_eq!(flight.get(&SystemClock, gather).await.unwrap().what, expected);
        }
    }
}
