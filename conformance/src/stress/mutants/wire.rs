//! Protocol buffers as a tree, without their schema: so that one number or part can be changed and all lengths stay right.
//!
//! The format is that of <https://protobuf.dev/programming-guides/encoding/>. Bytes that happen to read as a message are taken
//! for one; that only means other changes.

use armet_graph::Numbers;

/// No deeper: files of cases are not.
const DEEPEST: usize = 12;

/// A field: its number and type, and what it holds.
pub(super) struct Field {
    tag: u64,
    part: Part,
}

enum Part {
    Varint(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// Reads a message; `None` where the bytes are none.
pub(super) fn read(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let part = match tag & 7 {
            0 => Part::Varint(varint(&mut bytes)?),
            1 => Part::Fixed(take(&mut bytes, 8)?),
            5 => Part::Fixed(take(&mut bytes, 4)?),
            2 => {
                let len = usize::try_from(varint(&mut bytes)?).ok()?;
                let inner = take(&mut bytes, len)?;
                let message =
                    if depth < DEEPEST && !inner.is_empty() { read(&inner, depth + 1) } else { None };
                message.map_or(Part::Bytes(inner), Part::Message)
            }
            _ => return None,
        };
        if tag >> 3 == 0 {
            return None;
        }
        fields.push(Field { tag, part });
    }
    Some(fields)
}

/// The bytes of a message.
pub(super) fn write(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        put(&mut out, field.tag);
        match &field.part {
            Part::Varint(value) => put(&mut out, *value),
            Part::Fixed(bytes) => out.extend(bytes),
            Part::Bytes(bytes) => {
                put(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
            Part::Message(fields) => {
                let inner = write(fields);
                put(&mut out, inner.len() as u64);
                out.extend(inner);
            }
        }
    }
    out
}

/// Changes one thing somewhere: a number, a byte, or that a field is there, there twice or in another place.
pub(super) fn change(fields: &mut Vec<Field>, random: &mut Numbers) {
    let mut below = |most: usize| random.int(0, most.saturating_sub(1) as i64) as usize;
    let total = count(fields);
    if total == 0 {
        return;
    }
    let (at, kind) = (below(total), below(10));
    let (value, byte, bit, other) = (below(INTERESTING.len() + 12), below(1 << 16), below(8), below(1 << 16));
    let mut at = at;
    change_at(fields, &mut at, &mut |siblings, index| match kind {
        0 => drop(siblings.remove(index)),
        1 => {
            let again = write(&siblings[index..=index]);
            siblings.extend(read(&again, 0).unwrap_or_default());
        }
        2 => {
            let other = other % siblings.len();
            siblings.swap(index, other);
        }
        _ => match &mut siblings[index].part {
            Part::Varint(number) => {
                *number = match value {
                    0..4 => number.wrapping_add([1, u64::MAX, 2, 8][value]),
                    4..12 => value as u64 - 4,
                    _ => INTERESTING[value - 12] as u64,
                };
            }
            Part::Fixed(bytes) | Part::Bytes(bytes) => {
                let place = byte % bytes.len().max(1);
                if let Some(found) = bytes.get_mut(place) {
                    *found ^= 1 << bit;
                }
            }
            Part::Message(inner) => inner.clear(),
        },
    });
}

const INTERESTING: [i64; 12] =
    [-1, -2, -7, 16, 100, 255, 65536, i32::MAX as i64, i32::MIN as i64, 1 << 40, i64::MAX, i64::MIN];

fn count(fields: &[Field]) -> usize {
    let inner = |field: &Field| match &field.part {
        Part::Message(fields) => count(fields),
        _ => 0,
    };
    fields.iter().map(|field| 1 + inner(field)).sum()
}

/// Finds the field with this index, counted in order, and says whether it did.
fn change_at(
    fields: &mut Vec<Field>,
    at: &mut usize,
    change: &mut dyn FnMut(&mut Vec<Field>, usize),
) -> bool {
    for index in 0..fields.len() {
        if *at == 0 {
            change(fields, index);
            return true;
        }
        *at -= 1;
        if let Part::Message(inner) = &mut fields[index].part
            && change_at(inner, at, change)
        {
            return true;
        }
    }
    false
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(bytes: &mut &[u8], len: usize) -> Option<Vec<u8>> {
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        // Field 1 with 300, field 2 with a message of field 1 with 1, field 3 with four bytes.
        let bytes = [0x08, 0xAC, 0x02, 0x12, 0x02, 0x08, 0x01, 0x1D, 1, 2, 3, 4];
        let fields = read(&bytes, 0).expect("it is a message");
        assert_eq!((fields.len(), count(&fields)), (3, 4));
        assert_eq!(write(&fields), bytes);
        assert!(read(&bytes[..6], 0).is_none());
    }

    #[test]
    fn a_change_keeps_it_a_message() {
        let bytes = [0x08, 0xAC, 0x02, 0x12, 0x02, 0x08, 0x01, 0x1D, 1, 2, 3, 4];
        let mut changed = 0;
        for seed in 0..200 {
            let mut fields = read(&bytes, 0).expect("it is a message");
            change(&mut fields, &mut Numbers::new(seed));
            let out = write(&fields);
            assert!(read(&out, 0).is_some());
            changed += usize::from(out != bytes);
        }
        assert!(changed > 150, "{changed}");
    }
}
