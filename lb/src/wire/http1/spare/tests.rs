use http::header::{HOST, HeaderValue, VIA};

use super::*;

fn with(fields: usize) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(fields);
    map.append(HOST, HeaderValue::from_static("a"));
    map.append(VIA, HeaderValue::from_static("1.1 b"));
    map.append(VIA, HeaderValue::from_static("1.1 c"));
    map
}

#[test]
fn a_map_is_given_again_and_knows_nothing_of_its_last_message() {
    let given = with(10);
    let room = given.capacity();
    give_fields(given);
    let taken = take_fields(0);
    assert_eq!((taken.len(), taken.capacity()), (0, room));
    assert!(taken.get(HOST).is_none() && taken.get_all(VIA).iter().next().is_none());
    assert_eq!(take_fields(0).capacity(), 0, "there is no second one");
}

#[test]
fn what_is_kept_is_bounded() {
    give_fields(with(MOST_FIELDS * 2));
    give_fields(HeaderMap::new());
    assert_eq!(take_fields(0).capacity(), 0);
    for _ in 0..KEPT + 10 {
        give_fields(with(4));
    }
    let taken = std::iter::repeat_with(|| take_fields(0));
    assert_eq!(taken.take_while(|map| map.capacity() > 0).count(), KEPT);
}
