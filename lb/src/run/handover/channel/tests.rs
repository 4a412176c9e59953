use super::*;

// [RELOAD-41]
#[tokio::test]
async fn descriptors_come_with_the_words_that_they_were_sent_with() {
    let folder = std::env::temp_dir().join(format!("lb-channel-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("door.sock");
    let door = Door::open(&path).unwrap();
    let near = Channel::connect(&path).unwrap();
    let far = door.next().await.unwrap();
    let sockets: Vec<_> = (0..MOST)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    near.send("none", &[]).await.unwrap();
    near.send("one", &sockets[..1]).await.unwrap();
    near.send("all", &sockets).await.unwrap();
    let too_many: Vec<_> = (0..=MOST).map(|_| sockets[0].try_clone().unwrap()).collect();
    assert!(near.send("more", &too_many).await.is_err());
    drop(near);
    let addresses = |sockets: &[TcpListener]| -> Vec<_> {
        sockets
            .iter()
            .map(|socket| socket.local_addr().unwrap())
            .collect()
    };
    for (text, sent) in [("none", 0..0), ("one", 0..1), ("all", 0..MOST)] {
        let (said, received) = far.receive().await.unwrap();
        assert_eq!(said, text);
        assert_eq!(addresses(&received), addresses(&sockets[sent]));
    }
    assert_eq!(
        far.receive().await.unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
    std::fs::remove_dir_all(folder).unwrap();
}
