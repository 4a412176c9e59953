use super::*;

fn pieces(chunks: &[Vec<u8>]) -> Pieces {
    let mut pieces = Pieces::default();
    for chunk in chunks {
        pieces.push(Bytes::from(chunk.clone()));
    }
    pieces.sealed()
}

// [BODY-2]
#[test]
fn a_body_of_one_chunk_is_that_chunk() {
    let chunk = Bytes::from_static(b"{}");
    let mut body = Pieces::default();
    body.push(chunk.clone());
    let body = body.sealed();
    assert_eq!(body.single().map(|piece| piece.as_ptr()), Some(chunk.as_ptr()));
}

// [BODY-2] [STREAM-16]
#[test]
fn bytes_come_out_as_they_went_in_however_they_are_cut_and_wherever_they_are_spliced() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let chunks: Vec<Vec<u8>> = (0..random.usize(1..12))
            .map(|_| {
                let most = *random.choice(&[3, 100, 70_000]).expect("not empty");
                let length = random.usize(1..=most);
                std::iter::repeat_with(|| random.u8(..)).take(length).collect()
            })
            .collect();
        let whole = chunks.concat();
        let body = pieces(&chunks);
        assert_eq!(body.len(), whole.len());
        assert!(body.all().concat() == whole);
        let start = random.usize(0..whole.len());
        let end = random.usize(start..=whole.len());
        let spliced = body.spliced(start..end, Bytes::from_static(b"NEW")).concat();
        assert!(spliced == [&whole[..start], b"NEW", &whole[end..]].concat());
    }
}

// [BODY-2]
#[test]
fn no_segment_is_larger_than_a_megabyte() {
    let chunk = Bytes::from(vec![7; 30_000]);
    let mut body = Pieces::default();
    for _ in 0..300 {
        body.push(chunk.clone());
    }
    let body = body.sealed();
    let all = body.all();
    assert!(all.iter().all(|piece| piece.len() <= MAX_SEGMENT));
    assert_eq!(all.iter().map(Bytes::len).sum::<usize>(), 9_000_000);
}
