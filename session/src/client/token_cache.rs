//! The token that all callers share, and the one login at a time that renews it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderValue;
use openstack::{Error, ErrorKind};
use tokio::sync::watch;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::standing::Standing;

/// How long before its end a token is renewed, at most: the longest request that is started with it
/// should still find it alive.
const RENEW_AHEAD: Duration = Duration::from_secs(600);

/// How long after a failed renewal the next is tried, while the old token is still good.
const RENEWAL_REST: Duration = Duration::from_secs(30);

/// Logs in. Ends by itself within a time of its own.
#[async_trait]
pub(super) trait Login: Send + Sync {
    async fn login(&self) -> Result<Token, Error>;
}

/// A token with what came with it.
pub(super) struct Token {
    /// For the header `X-Auth-Token`; marked as sensitive.
    value: HeaderValue,
    pub(super) catalog: Catalog,
    /// Who we are with it, where the login has said so.
    pub(super) standing: Option<Standing>,
    renew_from: Instant,
    dead_from: Instant,
}

impl Token {
    /// A token that lives for `lifetime` after `issued`.
    pub(super) fn new(mut value: HeaderValue, catalog: Catalog, issued: Instant, lifetime: Duration) -> Self {
        value.set_sensitive(true);
        let renew_from = issued + lifetime - RENEW_AHEAD.min(lifetime / 2);
        Self {
            value,
            catalog,
            standing: None,
            renew_from,
            dead_from: issued + lifetime,
        }
    }

    /// The same, and who we are with it.
    pub(super) fn of(self, standing: Standing) -> Self {
        Self {
            standing: Some(standing),
            ..self
        }
    }

    pub(super) fn value(&self) -> &HeaderValue {
        &self.value
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

type Outcome = Result<Arc<Token>, Error>;

/// A login under way: its outcome, as soon as there is one.
type Flight = watch::Receiver<Option<Outcome>>;

#[derive(Default)]
struct State {
    token: Option<Arc<Token>>,
    flight: Option<Flight>,
    /// No renewal ahead of time before this.
    rest_until: Option<Instant>,
}

/// Gives everybody the same token.
///
/// A login runs as a task of its own: a caller that goes away does not take it along, and all who wait
/// get its outcome, success or not. So nobody waits longer than one login may take, and nobody at all
/// waits while the old token is still good. No lock is held while anything is awaited.
pub(super) struct TokenCache {
    login: Arc<dyn Login>,
    state: Arc<Mutex<State>>,
}

impl TokenCache {
    pub(super) fn new(login: Arc<dyn Login>) -> Self {
        Self {
            login,
            state: Arc::default(),
        }
    }

    /// A token that is good as far as we know.
    pub(super) async fn token(&self) -> Outcome {
        let flight = {
            let mut state = lock(&self.state);
            let now = Instant::now();
            match &state.token {
                Some(token) if now < token.dead_from => {
                    let token = Arc::clone(token);
                    if now >= token.renew_from && state.rest_until.is_none_or(|rest| now >= rest) {
                        self.flight(&mut state);
                    }
                    return Ok(token);
                }
                _ => self.flight(&mut state),
            }
        };
        outcome(flight).await
    }

    /// Another token than the one that a service has refused. Whoever comes late with an old one gets
    /// the current one without a login.
    pub(super) async fn replace(&self, refused: &HeaderValue) -> Outcome {
        {
            let mut state = lock(&self.state);
            if state.token.as_ref().is_some_and(|token| token.value == refused) {
                state.token = None;
            }
        }
        self.token().await
    }

    /// The login under way; if there is none, one is begun.
    fn flight(&self, state: &mut State) -> Flight {
        // One that is closed without an outcome went down with its runtime.
        if let Some(flight) = state
            .flight
            .as_ref()
            .filter(|flight| flight.has_changed().is_ok())
        {
            return flight.clone();
        }
        let (sender, flight) = watch::channel(None);
        state.flight = Some(flight.clone());
        let (login, shared) = (Arc::clone(&self.login), Arc::clone(&self.state));
        tokio::spawn(async move {
            let outcome = login.login().await.map(Arc::new);
            {
                let mut state = lock(&shared);
                state.flight = None;
                match &outcome {
                    Ok(token) => {
                        state.token = Some(Arc::clone(token));
                        state.rest_until = None;
                    }
                    Err(_) => state.rest_until = Some(Instant::now() + RENEWAL_REST),
                }
            }
            sender.send_replace(Some(outcome));
        });
        flight
    }
}

async fn outcome(mut flight: Flight) -> Outcome {
    let ended = flight
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|outcome| outcome.clone());
    ended.unwrap_or_else(|| {
        Err(Error::new(
            ErrorKind::OperationFailed,
            "the login was interrupted",
        ))
    })
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing in here can be left half done.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use tokio::time::{advance, sleep, timeout};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const SECOND: Duration = Duration::from_secs(1);

    /// Takes a second for a login that is numbered, or 30 s to fail.
    struct Fake {
        logins: AtomicUsize,
        broken: AtomicBool,
        lifetime: Duration,
    }

    #[async_trait]
    impl Login for Fake {
        async fn login(&self) -> Result<Token, Error> {
            let number = self.logins.fetch_add(1, Ordering::SeqCst) + 1;
            let issued = Instant::now();
            if self.broken.load(Ordering::SeqCst) {
                sleep(30 * SECOND).await;
                return Err(Error::new(ErrorKind::ProtocolError, "hangs"));
            }
            sleep(SECOND).await;
            let value = HeaderValue::from_str(&number.to_string()).unwrap();
            Ok(Token::new(value, Catalog::default(), issued, self.lifetime))
        }
    }

    fn cache(lifetime: Duration) -> (Arc<Fake>, Arc<TokenCache>) {
        let fake = Arc::new(Fake {
            logins: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            lifetime,
        });
        let cache = Arc::new(TokenCache::new(fake.clone()));
        (fake, cache)
    }

    async fn text(cache: &TokenCache) -> String {
        cache.token().await.unwrap().value().to_str().unwrap().to_owned()
    }

    fn logins(fake: &Fake) -> usize {
        fake.logins.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_shares_one_login_also_after_a_refusal() {
        let (fake, cache) = cache(HOUR);
        for round in 1..=3 {
            let crowd: Vec<_> = (0..50)
                .map(|_| {
                    let cache = Arc::clone(&cache);
                    tokio::spawn(async move {
                        let old = HeaderValue::from_str(&(round - 1).to_string()).unwrap();
                        cache.replace(&old).await.unwrap().value().clone()
                    })
                })
                .collect();
            for member in crowd {
                assert_eq!(member.await.unwrap(), round.to_string());
            }
            assert_eq!(logins(&fake), round);
        }
        // One who comes late with an old token.
        cache.replace(&HeaderValue::from_static("1")).await.unwrap();
        assert_eq!(logins(&fake), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn renewal_comes_ahead_and_nobody_waits_for_it() {
        for (lifetime, renewed_after) in [(HOUR, HOUR - RENEW_AHEAD), (60 * SECOND, 30 * SECOND)] {
            let (fake, cache) = cache(lifetime);
            assert_eq!(text(&cache).await, "1");
            advance(renewed_after - 2 * SECOND).await;
            assert_eq!(text(&cache).await, "1");
            assert_eq!(logins(&fake), 1);

            advance(2 * SECOND).await;
            let asked = Instant::now();
            assert_eq!(text(&cache).await, "1");
            assert_eq!(asked.elapsed(), Duration::ZERO);
            sleep(2 * SECOND).await;
            assert_eq!(text(&cache).await, "2");
            assert_eq!(logins(&fake), 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_keystone_harms_only_when_the_token_is_dead() {
        let (fake, cache) = cache(HOUR);
        assert_eq!(text(&cache).await, "1");
        fake.broken.store(true, Ordering::SeqCst);
        advance(HOUR - RENEW_AHEAD).await;
        for _ in 0..100 {
            let asked = Instant::now();
            assert_eq!(text(&cache).await, "1");
            assert_eq!(asked.elapsed(), Duration::ZERO);
            sleep(SECOND).await;
        }
        // Each try takes 30 s, and then rests for 30 s.
        assert_eq!(logins(&fake), 3);

        advance(HOUR).await;
        let asked = Instant::now();
        let (first, second) = tokio::join!(cache.token(), cache.token());
        assert!(first.is_err() && second.is_err());
        assert!(asked.elapsed() <= 30 * SECOND);
        fake.broken.store(false, Ordering::SeqCst);
        assert!(cache.token().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_goes_away_leaves_the_login_to_the_others() {
        let (fake, cache) = cache(HOUR);
        let impatient = timeout(SECOND / 2, cache.token()).await;
        assert!(impatient.is_err());
        let asked = Instant::now();
        assert_eq!(text(&cache).await, "1");
        assert_eq!(asked.elapsed(), SECOND / 2);
        assert_eq!(logins(&fake), 1);
    }

    #[test]
    fn a_login_that_went_down_with_its_runtime_is_begun_anew() {
        let (fake, cache) = cache(HOUR);
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
        };
        let first = runtime().unwrap();
        assert!(first.block_on(async { timeout(SECOND / 2, cache.token()).await.is_err() }));
        drop(first);
        runtime()
            .unwrap()
            .block_on(async { assert_eq!(text(&cache).await, "2") });
        assert_eq!(logins(&fake), 2);
    }
}
