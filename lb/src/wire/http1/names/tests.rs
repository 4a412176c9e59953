use super::*;

/// The names that messages carry most. No two of those that come together may push each other out.
const COMMON: [&str; 24] = [
    "host",
    "Host",
    "accept",
    "Accept",
    "accept-encoding",
    "Accept-Encoding",
    "authorization",
    "Authorization",
    "connection",
    "Connection",
    "content-length",
    "Content-Length",
    "content-type",
    "Content-Type",
    "user-agent",
    "User-Agent",
    "x-request-id",
    "date",
    "server",
    "transfer-encoding",
    "Transfer-Encoding",
    "cache-control",
    "openai-organization",
    "x-stainless-lang",
];

#[test]
fn a_name_is_the_one_that_its_spelling_makes_each_time_and_after_others() {
    let mut names = Names(Vec::new());
    let long = "x-".repeat(40);
    for _ in 0..3 {
        for spelling in COMMON.iter().copied().chain([&*long]) {
            let made = HeaderName::from_bytes(spelling.as_bytes()).expect("it is a name");
            assert_eq!(names.get(spelling.as_bytes()), Some(made), "{spelling}");
        }
    }
}

#[test]
fn what_is_no_name_is_none_each_time() {
    let mut names = Names(Vec::new());
    for _ in 0..2 {
        for spelling in [&b""[..], b"a b", b"a:", b"\x80", b"h\0st"] {
            assert_eq!(names.get(spelling), None, "{spelling:?}");
        }
    }
}

#[test]
fn as_much_is_kept_as_there_are_places_and_nothing_long() {
    let mut names = Names(Vec::new());
    for n in 0..10_000 {
        let spelling = format!("x-{n}-{}", "a".repeat(n % 60));
        names.get(spelling.as_bytes()).expect("it is a name");
    }
    assert_eq!(names.0.len(), PLACES);
    let longest = names.0.iter().flatten().map(|known| known.spelling().len());
    assert!(longest.max() <= Some(LONGEST));
}

#[test]
fn those_that_come_together_have_places_of_their_own() {
    let lower = COMMON
        .iter()
        .filter(|name| name.bytes().all(|byte| !byte.is_ascii_uppercase()));
    let mut places: Vec<_> = lower.map(|name| (place(name.as_bytes()), *name)).collect();
    places.sort_unstable();
    let shared: Vec<_> = places.windows(2).filter(|two| two[0].0 == two[1].0).collect();
    assert_eq!(shared, Vec::<&[(usize, &str)]>::new());
}
