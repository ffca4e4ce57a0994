//! A port at which a client expects TLS, and finds none.

use std::io;
use std::net::TcpStream;

use crate::fault::TlsAnswer;

use super::response::Connection;

/// The type of a TLS record that carries a handshake; no HTTP request begins with it.
const HANDSHAKE: u8 = 0x16;

/// Waits for the first byte, which stays unread.
pub(super) fn opens_with_it(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first), Ok(1)) && first == [HANDSHAKE]
}

pub(super) fn disappoint(
    answer: TlsAnswer,
    connection: &mut Connection,
    stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    // Closed over unread bytes, the connection would be reset, and the answer with it.
    let header = connection.read_exactly(5)?;
    connection.read_exactly(usize::from(header[3]) << 8 | usize::from(header[4]))?;
    match answer {
        TlsAnswer::PlainHttp => {
            let reason = b"a plain HTTP request was expected here";
            connection.respond(400, &Default::default(), "text/plain", reason)
        }
        TlsAnswer::Garbage => {
            let nonsense = [HANDSHAKE, 3, 3, 0, 8, 0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3];
            connection.write_bytes(&nonsense)
        }
        // fatal, handshake_failure
        TlsAnswer::Alert => connection.write_bytes(&[0x15, 3, 3, 0, 2, 2, 40]),
        TlsAnswer::Close => Ok(()),
        TlsAnswer::Silence => {
            connection.wait_for_end(stopped);
            Ok(())
        }
    }
}
