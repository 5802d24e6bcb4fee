//! `unprovision guard --events`: what happens to nodes, a JSON object on each line.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tokio::runtime::Handle;
use unprovision::guard::Told;

use crate::failure::Usage;
use crate::output;

/// How long a reader that is slow may delay the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes events in a thread of its own, so that whoever reads them delays nothing.
#[derive(Debug)]
pub(crate) struct EventWriter {
    done: mpsc::Receiver<()>,
}

/// Where events are written to, and how that goes.
struct Lines {
    place: String,
    open: fn(&str) -> io::Result<Box<dyn Write + Send>>,
    to: Option<Box<dyn Write + Send>>,
    /// How many could not be written since the last that could.
    lost: u64,
    /// It was said that events cannot be written.
    told: bool,
}

impl EventWriter {
    /// Opens the file, or `-` for standard output, and writes what the stream brings, until that ends.
    pub(crate) fn start<S>(place: &str, events: S) -> anyhow::Result<Self>
    where
        S: Stream<Item = Told> + Send + 'static,
    {
        let mut lines = Lines::to(place);
        if let Err(error) = lines.reopen() {
            if !has_no_reader(&error) {
                let words = format!("--events: {place} cannot be written: {error}; name a file, or `-`");
                return Err(Usage(words).into());
            }
            lines.complain(&error);
        }
        let (tell, done) = mpsc::channel();
        let runtime = Handle::current();
        std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || {
                let mut events = std::pin::pin!(events);
                while let Some(told) = runtime.block_on(events.next()) {
                    lines.put(&told);
                }
                // Nobody waits any more where it took too long.
                let _ = tell.send(());
            })?;
        Ok(Self { done })
    }

    /// Waits until what was told is written, for a while.
    pub(crate) fn finish(self) {
        if let Err(mpsc::RecvTimeoutError::Timeout) = self.done.recv_timeout(PATIENCE) {
            output::say("not all events could be written before the end: whoever reads them is too slow");
        }
    }
}

impl Lines {
    fn to(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            open: match place {
                "-" => |_| Ok(Box::new(std::io::stdout())),
                _ => |path| Ok(Box::new(open(path)?)),
            },
            to: None,
            lost: 0,
            told: false,
        }
    }

    fn reopen(&mut self) -> io::Result<&mut Box<dyn Write + Send>> {
        let to = match self.to.take() {
            Some(to) => to,
            None => (self.open)(&self.place)?,
        };
        Ok(self.to.insert(to))
    }

    /// Writes the event, and before it how many could not be written; says where that cannot be done, once.
    fn put(&mut self, told: &Told) {
        let mut text = String::new();
        if self.lost > 0 {
            // The last line may have been cut off.
            text = format!("\n{}\n", line(&Told::Missed(Some(self.lost))));
        }
        text.push_str(&line(told));
        text.push('\n');
        let written = self.reopen().and_then(|to| {
            to.write_all(text.as_bytes())?;
            to.flush()
        });
        match written {
            Ok(()) if self.lost > 0 => {
                output::say(&format!("events are written again; {} were lost", self.lost));
                self.lost = 0;
                self.told = false;
            }
            Ok(()) => self.told = false,
            Err(error) => {
                self.to = None;
                self.complain(&error);
                self.lost += 1;
            }
        }
    }

    /// Says that events cannot be written, and why; once, until they can be.
    fn complain(&mut self, error: &io::Error) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        output::say(&match error.kind() {
            ErrorKind::BrokenPipe => {
                "whoever read the events has gone; the guard goes on, and tells them to nobody".to_owned()
            }
            _ if has_no_reader(error) => format!(
                "nobody reads the events from {}; the guard goes on, and tells them once somebody does",
                self.place
            ),
            _ => format!(
                "an event could not be written to {}: {error}; the guard goes on, and the next one is tried again",
                self.place
            ),
        });
    }
}

/// Opens a file to append to it, without waiting for a reader where it is a pipe. What is written to one may wait.
fn open(path: &str) -> io::Result<File> {
    let at_once = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .custom_flags(at_once)
        .open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Whether it is a pipe that nobody reads.
fn has_no_reader(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NXIO)
}

fn line(told: &Told) -> String {
    // Texts, numbers and times can always be written.
    serde_json::to_string(told).unwrap_or_default()
}
