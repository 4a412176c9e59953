use super::*;

#[test]
fn kinds_survive_the_way_through_a_number() {
    for number in 1..8 {
        assert_eq!(Kind::from_number(number).map(|kind| kind as u8), Some(number));
    }
    assert_eq!(Kind::from_number(0), None);
    assert_eq!(Kind::from_number(8), None);
}

#[test]
fn a_record_is_read_at_any_alignment_and_never_beyond_its_end() {
    let mut ring = [0_u8; Event::SIZE + 1];
    ring[1..9].copy_from_slice(&77_u64.to_ne_bytes());
    ring[53..55].copy_from_slice(&9_u16.to_ne_bytes());
    ring[55] = Kind::Streak as u8;
    let event = Event::read(&ring[1..]).expect("the record is whole");
    assert_eq!((event.time, event.slot, event.kind), (77, 9, Kind::Streak as u8));
    assert_eq!(Event::read(&ring[2..]), None);
}
