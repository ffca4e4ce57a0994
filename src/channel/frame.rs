//! Length-prefixed framing, without I/O: a decoder that is fed bytes however they arrive.
//!
//! A frame is a 4-byte big-endian length and that many bytes of body. The cap is checked on the
//! header, so a hostile length costs nothing, and the body is stored only as its bytes arrive. What
//! a body means is not known here.

/// Bytes of a frame's header.
pub const HEADER: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {length} bytes, more than the {cap} allowed")]
    TooLong { length: usize, cap: usize },
    #[error("a frame without a body")]
    Empty,
}

/// Cuts a byte stream into frame bodies. Once it has failed it stays failed: after a wrong length
/// nothing that follows can be trusted to be a header.
#[derive(Debug)]
pub struct Decoder {
    cap: usize,
    header: [u8; HEADER],
    header_len: usize,
    body: Vec<u8>,
    /// Length of the body being read, once its header is complete.
    expected: Option<usize>,
    failed: Option<FrameError>,
}

impl Decoder {
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            header: [0; HEADER],
            header_len: 0,
            body: Vec::new(),
            expected: None,
            failed: None,
        }
    }

    /// Takes bytes off `input` until one frame is complete, and returns its body; `None` when the
    /// input is used up first. Call it until it returns `None`.
    pub fn decode(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, FrameError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let expected = match self.expected {
            Some(expected) => expected,
            None => {
                let take = input.len().min(HEADER - self.header_len);
                let (bytes, rest) = input.split_at(take);
                self.header[self.header_len..self.header_len + take].copy_from_slice(bytes);
                self.header_len += take;
                *input = rest;
                if self.header_len < HEADER {
                    return Ok(None);
                }
                let length = u32::from_be_bytes(self.header) as usize;
                let failed = if length == 0 {
                    Some(FrameError::Empty)
                } else if length > self.cap {
                    Some(FrameError::TooLong {
                        length,
                        cap: self.cap,
                    })
                } else {
                    None
                };
                if let Some(failed) = failed {
                    self.failed = Some(failed.clone());
                    return Err(failed);
                }
                *self.expected.insert(length)
            }
        };
        let take = input.len().min(expected - self.body.len());
        let (bytes, rest) = input.split_at(take);
        self.body.extend_from_slice(bytes);
        *input = rest;
        if self.body.len() < expected {
            return Ok(None);
        }
        self.header_len = 0;
        self.expected = None;
        Ok(Some(std::mem::take(&mut self.body)))
    }

    /// Bytes held back because their frame is not complete.
    pub fn buffered(&self) -> usize {
        self.header_len + self.body.len()
    }
}

/// The header of a body, or `None` when the body does not fit a frame.
pub fn header(body_len: usize) -> Option<[u8; HEADER]> {
    u32::try_from(body_len)
        .ok()
        .filter(|&n| n > 0)
        .map(u32::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(body: &[u8]) -> Vec<u8> {
        let mut frame = header(body.len()).expect("a body that fits").to_vec();
        frame.extend_from_slice(body);
        frame
    }

    fn decode_all(decoder: &mut Decoder, mut input: &[u8]) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut frames = Vec::new();
        while let Some(frame) = decoder.decode(&mut input)? {
            frames.push(frame);
        }
        Ok(frames)
    }

    #[test]
    fn the_cap_is_checked_before_a_body_is_stored() {
        let mut decoder = Decoder::new(8);
        let mut input: &[u8] = &[0xff, 0xff, 0xff, 0xff, 1, 2, 3];
        let error = decoder.decode(&mut input).unwrap_err();
        assert_eq!(
            error,
            FrameError::TooLong {
                length: 0xffff_ffff,
                cap: 8
            }
        );
        assert!(decoder.buffered() <= HEADER);
    }

    #[test]
    fn a_failed_decoder_stays_failed() {
        let mut decoder = Decoder::new(8);
        assert_eq!(decode_all(&mut decoder, &[0; 4]), Err(FrameError::Empty));
        assert_eq!(
            decode_all(&mut decoder, &encode(b"fine")),
            Err(FrameError::Empty)
        );
    }

    #[test]
    fn a_body_of_exactly_the_cap_passes_and_one_more_byte_does_not() {
        assert_eq!(
            decode_all(&mut Decoder::new(4), &encode(b"1234")),
            Ok(vec![b"1234".to_vec()])
        );
        assert!(decode_all(&mut Decoder::new(4), &encode(b"12345")).is_err());
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_the_cuts(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            cuts in prop::collection::vec(1usize..17, 1..40),
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|b| encode(b)).collect();
            let mut decoder = Decoder::new(64);
            let mut frames = Vec::new();
            let mut rest = &stream[..];
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let (chunk, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                frames.extend(decode_all(&mut decoder, chunk).unwrap());
                prop_assert!(decoder.buffered() <= 64 + HEADER);
                rest = tail;
            }
            prop_assert_eq!(frames, bodies);
            prop_assert_eq!(decoder.buffered(), 0);
        }
    }
}
