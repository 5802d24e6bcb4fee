//! The file with the clients' environment: there when everything is ready, gone when nothing is.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The file. Dropping this removes it.
#[derive(Debug)]
pub(super) struct EnvFile {
    path: PathBuf,
}

impl EnvFile {
    /// No file yet; one that an earlier run has left is removed, so that nobody takes it for ours.
    pub(super) fn new(path: &PathBuf) -> anyhow::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot replace {}", path.display()))
            }
            _ => Ok(Self { path: path.clone() }),
        }
    }

    /// Writes it as a whole: who sees it sees all of it.
    pub(super) fn write(&self, text: &str) -> anyhow::Result<()> {
        let beside = beside(&self.path);
        let written = write_new(&beside, text).and_then(|()| fs::rename(&beside, &self.path));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for EnvFile {
    fn drop(&mut self) {
        // It may be gone already, and nothing can be done where it cannot be removed.
        let _ = fs::remove_file(&self.path);
    }
}

/// A name in the same folder, so that renaming is atomic.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_there_as_long_as_it_is_true() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("env");
        fs::write(&path, "from an earlier run").unwrap();
        let file = EnvFile::new(&path).unwrap();
        assert!(!path.exists());
        file.write("export A='b'\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "export A='b'\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(file);
        assert!(!path.exists());
    }
}
