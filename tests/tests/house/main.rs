//! Rules of the house that no lint checks.

mod documents;

use std::fs;
use std::path::{Path, PathBuf};

/// A file has one reason to exist. Over this many lines it has two.
const MOST_LINES: usize = 400;

#[test]
fn no_source_file_is_longer_than_its_reason() -> std::io::Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for member in [
        "session",
        "ironic-client",
        "placement-client",
        "unprovision",
        "service",
        "bin",
        "tests",
    ] {
        collect(&workspace.join(member), &mut files)?;
    }
    assert!(files.len() > 100, "the sources were not found");
    let mut long = Vec::new();
    for file in files {
        let lines = fs::read_to_string(&file)?.lines().count();
        if lines > MOST_LINES {
            long.push(format!("{}: {lines} lines", file.display()));
        }
    }
    assert!(long.is_empty(), "split these: {long:#?}");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
