use http::HeaderValue;

use super::*;

const ALL: [(HeaderName, Present); 7] = [
    (header::CONNECTION, Present::CONNECTION),
    (header::CONTENT_LENGTH, Present::CONTENT_LENGTH),
    (header::EXPECT, Present::EXPECT),
    (header::TE, Present::TE),
    (header::TRANSFER_ENCODING, Present::TRANSFER_ENCODING),
    (header::UPGRADE, Present::UPGRADE),
    (header::VIA, Present::VIA),
];

fn among(names: &[HeaderName]) -> Present {
    let fields = names.iter().cloned();
    Present::among(
        &fields
            .map(|name| (name, HeaderValue::from_static("x")))
            .collect::<HeaderMap>(),
    )
}

#[test]
fn each_field_is_told_from_all_others() {
    for (name, own) in &ALL {
        let found = among(std::slice::from_ref(name));
        for (_, other) in &ALL {
            assert_eq!(found.any(*other), own == other, "{name}");
        }
    }
}

#[test]
fn a_message_has_what_it_has_and_nothing_of_the_same_length() {
    let strangers = [
        header::HOST,
        header::AGE,
        header::COOKIE,
        header::USER_AGENT,
        header::ACCEPT_RANGES,
    ];
    let strangers: Vec<_> = strangers
        .into_iter()
        .chain(["xx", "xxx", "xxxxxx", "xxxxxxx", "xxxxxxxxxx"].map(HeaderName::from_static))
        .chain(["xxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxx"].map(HeaderName::from_static))
        .collect();
    assert_eq!(among(&strangers), Present::default());
    let mut two = strangers;
    two.extend([header::VIA, header::TE]);
    let found = among(&two);
    assert!(found.any(Present::VIA) && found.any(Present::TE));
    assert!(!found.any(Present::UPGRADE) && !found.any(Present::CONNECTION));
}
