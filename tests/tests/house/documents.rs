//! The documents hang together: each link leads somewhere, and each page is in the book.

#![allow(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All documents below a folder, without what was built or is checked out elsewhere.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            documents(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines that are not in a block of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Where the links of a line lead to.
fn links(line: &str) -> Vec<&str> {
    let ends = line.match_indices("](").map(|(at, _)| &line[at + 2..]);
    ends.filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
        .collect()
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(document: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(document).unwrap();
    prose(&text)
        .filter(|line| line.starts_with('#'))
        .map(anchor)
        .collect()
}

#[test]
fn each_link_leads_somewhere() {
    let mut found = Vec::new();
    documents(&workspace(), &mut found);
    assert!(found.len() > 40, "the documents were not found");
    let mut broken = Vec::new();
    let mut seen = 0;
    for document in &found {
        let text = fs::read_to_string(document).unwrap();
        for link in prose(&text).flat_map(links).filter(|link| !link.contains("://")) {
            seen += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let to = match file {
                "" => document.clone(),
                file => document.parent().unwrap().join(file),
            };
            let there = to.exists() && (place.is_empty() || anchors(&to).contains(place));
            if !there {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(seen > 150, "only {seen} links were found");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn each_page_is_in_the_book() {
    let docs = workspace().join("docs");
    let mut pages = Vec::new();
    documents(&docs, &mut pages);
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = summary
        .lines()
        .flat_map(links)
        .map(|link| docs.join(link))
        .collect();
    let missing: Vec<_> = pages
        .iter()
        .filter(|page| !page.ends_with("SUMMARY.md") && !listed.contains(*page))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:#?}");
}
