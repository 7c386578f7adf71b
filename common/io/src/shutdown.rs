//! SIGTERM and SIGINT as one future that many tasks can wait for.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Which signal asked the process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Interrupt,
}

/// Cloneable: every task holds one and waits for [`Shutdown::requested`].
#[derive(Debug, Clone)]
pub struct Shutdown {
    receiver: watch::Receiver<Option<Signal>>,
}

impl Shutdown {
    /// Installs the handlers. Call once, inside a tokio runtime.
    pub fn install() -> std::io::Result<Self> {
        let (sender, receiver) = watch::channel(None);
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            loop {
                let caught = tokio::select! {
                    _ = terminate.recv() => Signal::Terminate,
                    _ = interrupt.recv() => Signal::Interrupt,
                };
                if sender.send(Some(caught)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { receiver })
    }

    /// A pair for tests and for owners that end a service themselves.
    pub fn manual() -> (watch::Sender<Option<Signal>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self { receiver })
    }

    pub fn is_requested(&self) -> bool {
        self.receiver.borrow().is_some()
    }

    /// Completes when the process was asked to end; at once if that was so before the call.
    pub async fn requested(&mut self) -> Signal {
        match self.receiver.wait_for(Option::is_some).await {
            Ok(caught) => caught.unwrap_or(Signal::Terminate),
            // The sender lives as long as the handlers: its end means that the runtime shuts down.
            Err(_) => Signal::Terminate,
        }
    }
}
