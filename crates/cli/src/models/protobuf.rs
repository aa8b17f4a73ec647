//! Fields of a protobuf message, as far as rewriting a skeleton needs them: where each starts, ends and has its payload.
//!
//! Contract: total; any bytes give fields or a [`Malformed`].

/// The bytes are no protobuf message.
#[derive(Debug, thiserror::Error)]
#[error("not a protobuf message")]
pub(crate) struct Malformed;

/// One field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub number: u64,
    /// Key and payload, as they stand in the message.
    pub whole: &'a [u8],
    /// The payload of a length-delimited field; empty for the others.
    pub bytes: &'a [u8],
    /// The value of a varint field; zero for the others.
    pub varint: u64,
}

/// The fields of a message in order.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = Result<Field<'_>, Malformed>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = read(rest);
        rest = field.as_ref().map_or(&[], |field| &rest[field.whole.len()..]);
        Some(field)
    })
}

fn read(message: &[u8]) -> Result<Field<'_>, Malformed> {
    let mut rest = message;
    let key = varint(&mut rest)?;
    let mut field = Field { number: key >> 3, whole: message, bytes: &[], varint: 0 };
    let skip = match key & 7 {
        0 => {
            field.varint = varint(&mut rest)?;
            0
        }
        1 => 8,
        2 => usize::try_from(varint(&mut rest)?).map_err(|_| Malformed)?,
        5 => 4,
        _ => return Err(Malformed),
    };
    let (payload, after) = rest.split_at_checked(skip).ok_or(Malformed)?;
    field.bytes = if key & 7 == 2 { payload } else { &[] };
    field.whole = &message[..message.len() - after.len()];
    Ok(field)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(Malformed)?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

/// Appends a length-delimited field.
pub(crate) fn push_bytes(message: &mut Vec<u8>, number: u64, payload: &[u8]) {
    push_varint(message, number << 3 | 2);
    push_varint(message, payload.len() as u64);
    message.extend_from_slice(payload);
}

fn push_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_wrote() {
        let mut message = vec![0x08, 0x96, 0x01];
        push_bytes(&mut message, 9, &[7; 300]);
        let read: Vec<_> = fields(&message).map(Result::unwrap).collect();
        assert_eq!((read[0].number, read[0].varint, read[0].whole), (1, 150, &message[..3]));
        assert_eq!((read[1].number, read[1].bytes, read.len()), (9, &[7; 300][..], 2));
    }

    #[test]
    fn every_cut_of_a_message_is_refused_or_shorter() {
        let mut message = Vec::new();
        push_bytes(&mut message, 1, b"abc");
        push_bytes(&mut message, 2, b"def");
        for length in 0..message.len() {
            let whole = fields(&message[..length]).flatten().count();
            assert!(whole < 2, "{length}");
        }
        assert!(fields(&[0x80; 11]).any(|field| field.is_err()), "a varint has ten bytes at most");
        assert!(fields(&[0x0b]).any(|field| field.is_err()), "groups are not used");
    }
}
