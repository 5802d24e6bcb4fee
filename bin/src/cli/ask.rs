//! The question before something is changed that cannot be taken back.

use std::io::{self, BufRead, IsTerminal};

use crate::failure::Usage;
use crate::output;

/// Whether there is somebody to ask.
pub(super) fn somebody() -> bool {
    io::stdin().is_terminal()
}

/// Shows what would be done, and asks. Any answer but yes is an error.
pub(super) async fn confirm(question: &str) -> anyhow::Result<()> {
    output::say_to_somebody(&format!("{question} [y/N]"));
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    match answer.await??.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Usage("not confirmed; nothing was touched".to_owned()).into()),
    }
}
