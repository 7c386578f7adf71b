//! Meeting under bad circumstances: strangers, old generations, ranks that come late.

use super::*;

fn meeting(rank: u32, endpoints: &[String]) -> Meeting {
    Meeting {
        job: "job".to_owned(),
        generation: 7,
        secret: "secret".to_owned(),
        rank,
        endpoints: endpoints.to_vec(),
        timeout: Duration::from_secs(20),
    }
}

fn listener() -> (Listener, String) {
    let listener = Listener::bind("127.0.0.1").unwrap();
    let endpoint = format!("127.0.0.1:{}", listener.port().unwrap());
    (listener, endpoint)
}

/// DST-02: a process with old values is turned away with that reason, and the meeting goes on.
#[test]
fn an_old_generation_is_turned_away_with_the_reason_and_the_meeting_goes_on() {
    let (first, endpoint) = listener();
    let (second, other) = listener();
    let endpoints = [endpoint, other];
    let waiting = {
        let meeting = meeting(0, &endpoints);
        std::thread::spawn(move || connect(first, &meeting).map(|peers| peers.len()))
    };
    let old = Meeting { generation: 6, ..meeting(1, &endpoints) };
    let (unused, _) = listener();
    let error = connect(unused, &old).unwrap_err();
    assert_eq!(error.to_string(), "rank 0 turned this process away: generation 6 is over, this is generation 7");
    let mut stranger = TcpStream::connect(&endpoints[0]).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    drop(stranger);
    let peers = connect(second, &meeting(1, &endpoints)).unwrap();
    assert!(peers[0].is_some());
    assert_eq!(waiting.join().unwrap().unwrap(), 2);
}

/// DST-03: ranks wait with back-off until the master answers.
#[test]
fn a_rank_waits_for_a_master_that_listens_late() {
    let (reserve, endpoint) = listener();
    let port = reserve.port().unwrap();
    drop(reserve);
    let (second, other) = listener();
    let endpoints = [endpoint, other];
    let early = {
        let meeting = meeting(1, &endpoints);
        std::thread::spawn(move || connect(second, &meeting).map(|peers| peers.len()))
    };
    // The early rank has called at least once when this thread has seen a refused call itself.
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    let late = Listener { socket: TcpListener::bind(("127.0.0.1", port)).unwrap() };
    connect(late, &meeting(0, &endpoints)).unwrap();
    assert_eq!(early.join().unwrap().unwrap(), 2);
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let (first, endpoint) = listener();
    let endpoints = [endpoint, "127.0.0.1:1".to_owned()];
    let meeting = Meeting { timeout: Duration::from_millis(50), ..meeting(0, &endpoints) };
    let error = connect(first, &meeting).unwrap_err().to_string();
    assert_eq!(error, "rank 1 at 127.0.0.1:1 could not be reached within 0 s: it never called");
}
