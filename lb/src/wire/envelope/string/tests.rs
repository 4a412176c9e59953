use super::{BLOCK, is_special, plain};

/// Each length over several blocks, with each special byte at each place and with none: words, blocks and what is left
/// over agree with a look at one byte after the other.
#[test]
fn the_first_special_byte_is_found_wherever_it_stands() {
    for length in 0..=3 * BLOCK + 9 {
        let text = vec![b'a'; length];
        assert_eq!(plain(&text), length);
        for at in 0..length {
            for special in [0, 0x1f, b'"', b'\\'] {
                let mut text = text.clone();
                text[at] = special;
                assert_eq!(plain(&text), at, "{special:#x} of {length}");
            }
        }
    }
}

#[test]
fn bytes_that_look_like_special_ones_are_none() {
    let near: Vec<u8> = (0..=u8::MAX).filter(|byte| !is_special(*byte)).collect();
    for turned in 0..near.len() {
        let mut text = near.clone();
        text.rotate_left(turned);
        assert_eq!(plain(&text), text.len(), "from {:#x}", text[0]);
    }
}
