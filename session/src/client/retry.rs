//! Sending again: when, how often, how long after, and how much of it altogether.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::time::Instant;

use crate::{Resend, TransportError, retry_after};

/// How a transport sends requests again that failed in passing.
///
/// Whether a request may be sent again is the request's matter ([`Resend`]); this is about how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often one request is sent, with the first time. 1 means no retries.
    pub attempts: usize,
    /// The wait before the second attempt. It doubles from each to the next, and each wait is
    /// lengthened by chance by up to as much again.
    pub first_delay: Duration,
    /// The longest wait; also for a server that asks for a longer one by `Retry-After`.
    pub max_delay: Duration,
    /// No attempt begins later than this after the first one.
    pub total: Duration,
    /// How many retries the transport has in store for all its requests together. Each retry takes one,
    /// each request brings back a fifth: in the long run retries add no more than 20 %, so that they do
    /// not bury a service that is coming up again.
    pub reserve: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            total: Duration::from_secs(120),
            reserve: 10,
        }
    }
}

impl RetryPolicy {
    /// No retries at all.
    pub fn none() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }
}

/// What one attempt led to.
type Answer = Result<Response<Bytes>, TransportError>;

/// Sends again by a policy, with one budget for all requests.
#[derive(Debug)]
pub(super) struct Retrier {
    policy: RetryPolicy,
    budget: Budget,
}

impl Retrier {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        let budget = Budget::new(policy.reserve);
        Self { policy, budget }
    }

    /// Attempts until there is an answer worth having, and returns the last one.
    pub(super) async fn run<F, Fut>(&self, resend: Resend, mut attempt: F) -> Answer
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Answer>,
    {
        self.budget.earn();
        let began = Instant::now();
        let backoff = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(self.policy.first_delay)
            .with_max_delay(self.policy.max_delay)
            .with_max_times(self.policy.attempts.saturating_sub(1));
        // backon repeats errors. Those that are worth repeating are some answers as well.
        let attempt = || {
            let attempt = attempt();
            async move {
                match attempt.await {
                    Ok(answer) if !is_passing(answer.status()) => Ok(answer),
                    failed => Err(failed),
                }
            }
        };
        let result = attempt
            .retry(backoff)
            .when(|failed| may_resend(resend, failed))
            .adjust(|failed, delay| {
                let asked = failed
                    .as_ref()
                    .ok()
                    .and_then(|answer| retry_after(answer.headers()));
                let delay = delay?.max(asked.unwrap_or_default()).min(self.policy.max_delay);
                let in_time = began.elapsed() + delay <= self.policy.total;
                (in_time && self.budget.take()).then_some(delay)
            })
            .notify(|failed, delay| match failed {
                Ok(answer) => tracing::warn!(status = answer.status().as_u16(), ?delay, "sending again"),
                Err(error) => tracing::warn!(%error, ?delay, "sending again"),
            })
            .await;
        result.or_else(|failed| failed)
    }
}

/// Whether an answer says that another one may be had later.
fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn may_resend(resend: Resend, failed: &Answer) -> bool {
    let untouched = match failed {
        Ok(answer) => answer.status() == StatusCode::TOO_MANY_REQUESTS,
        Err(TransportError::NotSent { .. }) => true,
        Err(TransportError::MaybeApplied { .. }) => false,
        // The same again would fare the same, or has a time-out of its own behind it (the login).
        Err(_) => return false,
    };
    match resend {
        Resend::Safe => true,
        Resend::IfNotApplied => untouched,
        Resend::Never => false,
    }
}

/// Retries in store, counted in fifths.
#[derive(Debug)]
struct Budget {
    full: u32,
    left: Mutex<u32>,
}

impl Budget {
    const RETRY: u32 = 5;

    fn new(reserve: u32) -> Self {
        let full = reserve.saturating_mul(Self::RETRY);
        Self {
            full,
            left: Mutex::new(full),
        }
    }

    fn earn(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_add(1).min(self.full);
    }

    fn take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = left.checked_sub(Self::RETRY);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn answer(status: u16) -> Answer {
        Ok(Response::builder().status(status).body(Bytes::new()).unwrap())
    }

    fn not_sent() -> Answer {
        Err(TransportError::NotSent {
            service: "ironic".into(),
            source: "refused".into(),
        })
    }

    fn maybe_applied() -> Answer {
        Err(TransportError::MaybeApplied {
            service: "ironic".into(),
            waited: None,
            source: "reset".into(),
        })
    }

    fn login() -> Answer {
        Err(TransportError::Login {
            service: "ironic".into(),
            message: String::new(),
            transient: true,
        })
    }

    fn too_large() -> Answer {
        Err(TransportError::TooLarge {
            service: "ironic".into(),
            limit: 1,
        })
    }

    /// Runs with an attempt that always ends the same; returns how often it was made.
    async fn attempts(retrier: &Retrier, resend: Resend, make: impl Fn() -> Answer) -> usize {
        let count = Cell::new(0);
        let last = retrier
            .run(resend, || {
                count.set(count.get() + 1);
                std::future::ready(make())
            })
            .await;
        assert_eq!(format!("{last:?}"), format!("{:?}", make()));
        count.get()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_again() {
        type Case = (fn() -> Answer, usize, usize, usize);
        let cases: [Case; 13] = [
            // What happens, and how often it is sent: Safe, IfNotApplied, Never.
            (|| answer(200), 1, 1, 1),
            (|| answer(401), 1, 1, 1),
            (|| answer(404), 1, 1, 1),
            (|| answer(409), 1, 1, 1),
            (|| answer(429), 5, 5, 1),
            (|| answer(500), 1, 1, 1),
            (|| answer(502), 5, 1, 1),
            (|| answer(503), 5, 1, 1),
            (|| answer(504), 5, 1, 1),
            (not_sent, 5, 5, 1),
            (maybe_applied, 5, 1, 1),
            (login, 1, 1, 1),
            (too_large, 1, 1, 1),
        ];
        for (make, safe, if_not_applied, never) in cases {
            let count = async |resend| attempts(&Retrier::new(RetryPolicy::default()), resend, make).await;
            assert_eq!(count(Resend::Safe).await, safe, "{:?}", make());
            assert_eq!(count(Resend::IfNotApplied).await, if_not_applied, "{:?}", make());
            assert_eq!(count(Resend::Never).await, never, "{:?}", make());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_first_good_answer() {
        let mut outcomes = vec![answer(200), answer(503), maybe_applied(), not_sent()];
        let retrier = Retrier::new(RetryPolicy::default());
        let last = retrier
            .run(Resend::Safe, || std::future::ready(outcomes.pop().unwrap()))
            .await;
        assert_eq!(last.unwrap().status(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_with_chance_and_stay_below_the_limit() {
        let policy = RetryPolicy {
            attempts: 8,
            max_delay: 10 * SECOND,
            ..RetryPolicy::default()
        };
        let times = std::cell::RefCell::new(Vec::new());
        let run = Retrier::new(policy);
        let _ = run
            .run(Resend::Safe, || {
                times.borrow_mut().push(Instant::now());
                std::future::ready(answer(503))
            })
            .await;
        let times = times.into_inner();
        let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let floors = [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0].map(Duration::from_secs_f64);
        assert_eq!(waits.len(), floors.len());
        for (wait, floor) in waits.into_iter().zip(floors) {
            // Timers have a millisecond's grain.
            let most = (floor * 2).min(10 * SECOND) + Duration::from_millis(1);
            assert!(wait >= floor && wait <= most, "{wait:?} for {floor:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_heeded_up_to_the_limit() {
        for (asked, least, most) in [("7", 7, 8), ("0", 0, 2), ("86400", 30, 31)] {
            let asked_for = || {
                let answer = Response::builder().status(429).header("retry-after", asked);
                Ok(answer.body(Bytes::new()).unwrap())
            };
            let began = Instant::now();
            let policy = RetryPolicy {
                attempts: 2,
                ..RetryPolicy::default()
            };
            assert_eq!(
                attempts(&Retrier::new(policy), Resend::IfNotApplied, asked_for).await,
                2
            );
            let waited = began.elapsed();
            assert!(
                waited >= least * SECOND && waited <= most * SECOND,
                "{asked}: {waited:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_begins_after_the_total_time() {
        let policy = RetryPolicy {
            attempts: 100,
            total: 60 * SECOND,
            reserve: 100,
            ..RetryPolicy::default()
        };
        let began = Instant::now();
        attempts(&Retrier::new(policy), Resend::Safe, not_sent).await;
        assert!(began.elapsed() <= 60 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn the_budget_bounds_all_retries_together() {
        let retrier = Retrier::new(RetryPolicy::default());
        let mut sent = 0;
        for _ in 0..100 {
            sent += attempts(&retrier, Resend::Safe, || answer(503)).await;
        }
        // 100 requests, 20 % of them, and the reserve.
        assert!((125..=130).contains(&sent), "{sent}");
        assert_eq!(
            attempts(&Retrier::new(RetryPolicy::none()), Resend::Safe, not_sent).await,
            1
        );
    }
}
