//! Guesses at what somebody meant who wrote a name that does not exist.

/// The candidate that looks most like a name, if any comes near.
///
/// ```
/// use unprovision_session::nearest;
/// assert_eq!(nearest("regoin", ["cloud", "region"].into_iter()), Some("region"));
/// assert_eq!(nearest("weather", ["cloud", "region"].into_iter()), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Below this two names only share a few letters.
    const ALIKE: f64 = 0.75;
    candidates
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// The end of a message about a name that does not exist: `, did you mean ...?`, or nothing.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!(", did you mean `{name}`?"))
        .unwrap_or_default()
}
