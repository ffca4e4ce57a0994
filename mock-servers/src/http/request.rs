//! Reads one HTTP request.

use std::io;

use super::response::Connection;

/// No MCP client of a test sends more.
const MAX_BODY: usize = 256 << 20;

pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The next request, or `None` when the client has closed the connection.
    pub(super) fn read(connection: &mut Connection) -> io::Result<Option<Self>> {
        let Some(head) = connection.read_past(b"\r\n\r\n")? else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.split("\r\n");
        let mut opening = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (opening.next(), opening.next());
        let (Some(method), Some(path)) = (method, path) else {
            return Err(malformed());
        };
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
        };
        let chunked = request
            .header("transfer-encoding")
            .is_some_and(|v| v.contains("chunked"));
        request.body = if chunked {
            read_chunks(connection)?
        } else {
            let length = request
                .header("content-length")
                .map_or(Ok(0), str::parse::<usize>);
            let length = length
                .ok()
                .filter(|n| *n <= MAX_BODY)
                .ok_or_else(malformed)?;
            connection.read_exactly(length)?
        };
        Ok(Some(request))
    }
}

fn read_chunks(connection: &mut Connection) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = connection.read_past(b"\r\n")?.ok_or_else(malformed)?;
        let size = String::from_utf8_lossy(&line);
        let size = size.trim().split(';').next().unwrap_or_default().to_owned();
        let size = usize::from_str_radix(&size, 16).map_err(|_| malformed())?;
        if size > MAX_BODY - body.len() {
            return Err(malformed());
        }
        body.extend(connection.read_exactly(size)?);
        connection.read_exactly(2)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not an HTTP request")
}
