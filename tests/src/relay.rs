//! A wire that can be cut: TCP to one place, with nothing of it understood.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A relay on the loopback. While it is cut, it takes connections and bytes and passes none on, as a network does that has come apart;
/// once it is mended, those connections are gone.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    cut: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// A relay to this place.
    ///
    /// # Errors
    ///
    /// Where it cannot listen.
    pub async fn to(place: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (cut, is_cut) = watch::channel(false);
        let task = tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                tokio::spawn(pass_on(here, place, is_cut.clone()));
            }
        });
        Ok(Self { address, cut, task })
    }

    /// Nothing comes through any more.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// New connections come through again.
    pub fn mend(&self) {
        self.cut.send_replace(false);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(mut here: TcpStream, place: SocketAddr, mut is_cut: watch::Receiver<bool>) {
    let passing = async {
        if let Ok(mut there) = TcpStream::connect(place).await {
            // Either end may go at any time; then the other one goes as well.
            let _ = copy_bidirectional(&mut here, &mut there).await;
        }
    };
    let cut = async {
        if is_cut.wait_for(|cut| *cut).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        () = cut => {}
        () = passing => return,
    }
    // The sender is gone with the relay: then this connection may go, too.
    let _ = is_cut.wait_for(|cut| !*cut).await;
}
