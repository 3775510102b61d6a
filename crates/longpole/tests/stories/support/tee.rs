//! A wire that is listened to: what goes over it, byte by byte, is what one end said, whatever the other end makes of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A port that passes everything on to another one.
pub(crate) struct Tee {
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// By connection: what is looked for may come in two parts.
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Tee {
    pub(crate) fn before(address: &str) -> Tee {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tee = Tee { address: listener.local_addr().unwrap().to_string(), heard: Arc::default() };
        let (heard, address) = (Arc::clone(&tee.heard), address.to_owned());
        thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                let to = TcpStream::connect(&address).unwrap();
                let (answers, caller) = (to.try_clone().unwrap(), from.try_clone().unwrap());
                thread::spawn(move || pass(answers, caller, |_| {}));
                let (heard, place) = (Arc::clone(&heard), heard.lock().unwrap().len());
                heard.lock().unwrap().push(Vec::new());
                thread::spawn(move || pass(from, to, |bytes| heard.lock().unwrap()[place].extend_from_slice(bytes)));
            }
        });
        tee
    }

    /// How often callers said this.
    pub(crate) fn count(&self, what: &[u8]) -> usize {
        self.heard.lock().unwrap().iter().flat_map(|said| said.windows(what.len())).filter(|part| *part == what).count()
    }
}

/// Passes on what comes until nothing comes.
fn pass(mut from: TcpStream, mut to: TcpStream, mut hear: impl FnMut(&[u8])) {
    let mut buffer = [0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        hear(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
    to.shutdown(std::net::Shutdown::Write).ok();
}
