//! The source within the process: whoever embeds the guard tells it what it knows.

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc;

use super::{EventSource, Said};

/// What one says comes out of the other. `room`: so many things may be said before somebody has listened.
pub fn channel(room: usize) -> (Sender, Channel) {
    let (sender, receiver) = mpsc::channel(room.max(1));
    let inner = Arc::new(Mutex::new(Some(receiver)));
    (Sender(sender), Channel { inner })
}

/// Where things are said. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sender(mpsc::Sender<Said>);

impl Sender {
    /// Says it, and waits while there is no room. `false`: nobody will ever listen.
    pub async fn say(&self, what: Said) -> bool {
        self.0.send(what).await.is_ok()
    }

    /// Says it if there is room.
    pub fn try_say(&self, what: Said) -> bool {
        self.0.try_send(what).is_ok()
    }
}

/// A source within the process. One can listen at a time; what was said before is kept for the next one.
#[derive(Clone, Debug)]
pub struct Channel {
    inner: Arc<Mutex<Option<mpsc::Receiver<Said>>>>,
}

/// The listening end, which goes back when the listening ends.
struct Listening<'a> {
    of: &'a Channel,
    receiver: Option<mpsc::Receiver<Said>>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        *self.of.inner.lock().unwrap_or_else(PoisonError::into_inner) = self.receiver.take();
    }
}

impl EventSource for Channel {
    fn name(&self) -> String {
        "this process".to_owned()
    }

    fn listen(&self) -> BoxStream<'_, Said> {
        let receiver = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let state = Listening { of: self, receiver };
        let said = stream::unfold(state, |mut state| async move {
            let said = match &mut state.receiver {
                Some(receiver) => receiver.recv().await,
                None => None,
            };
            match said {
                Some(said) => Some((said, state)),
                // Nobody is left who could say something, or somebody else listens.
                None => std::future::pending().await,
            }
        });
        stream::once(std::future::ready(Said::Listens))
            .chain(said)
            .boxed()
    }
}
