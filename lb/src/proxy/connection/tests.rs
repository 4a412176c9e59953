use super::*;

/// The room that a connection takes for as long as it lives.
fn size<F: Future>(
    _: impl FnOnce(Arc<Worker>, &'static Terms, Arc<Peer>, TcpStream, watch::Receiver<Drain>) -> F,
) -> usize {
    size_of::<F>()
}

// [HTTP-47]
#[test]
fn a_connection_of_http1_takes_no_room_for_what_it_does_not_speak() {
    let room = size(run);
    assert!(room <= 2048, "{room} bytes");
}
