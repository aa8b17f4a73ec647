//! Whether the bytes of a JPEG are all there and fit together.
//!
//! The decoder shows what it can of a broken file and does not say so. This walk over the compressed data keeps no
//! pixels: it follows every code of every scan and refuses a file that ends early, has a code that means nothing, or
//! whose scans hold more or less than the picture needs. Kinds of JPEG that the decoder refuses by itself are passed on.

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It ends before the picture does.
    Cut,
    /// Something in it cannot be.
    Damaged,
}

impl Fault {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Cut => "the file ends before the picture does",
            Self::Damaged => "its compressed data are damaged",
        }
    }
}

/// Some programs put a few bytes more than they need before a marker.
const SPARE_BYTES: usize = 8;

struct Component {
    id: u8,
    horizontal: usize,
    vertical: usize,
    /// Blocks in a row, those of the last unit included.
    stride: usize,
    /// Which coefficients of each block are known not to be nought; progressive files only.
    known: Vec<u64>,
}

struct Frame {
    progressive: bool,
    width: usize,
    height: usize,
    components: Vec<Component>,
}

/// Codes of a canonical Huffman table by their length.
struct Table {
    first_code: [i32; 17],
    first_symbol: [usize; 17],
    counts: [i32; 17],
    symbols: Vec<u8>,
    /// Length and symbol by the next eight bits, for codes that are no longer.
    short: Box<[(u8, u8); 256]>,
}

impl Table {
    fn new(counts: &[u8], symbols: &[u8]) -> Self {
        let mut table = Self {
            first_code: [0; 17],
            first_symbol: [0; 17],
            counts: [0; 17],
            symbols: symbols.to_vec(),
            short: Box::new([(0, 0); 256]),
        };
        let (mut code, mut symbol) = (0i32, 0usize);
        for length in 1..=16usize {
            let count = i32::from(counts[length - 1]);
            (table.first_code[length], table.first_symbol[length], table.counts[length]) =
                (code, symbol, count);
            for _ in 0..if length <= 8 { count } else { 0 } {
                let from = (code as usize) << (8 - length);
                for place in from..(from + (1 << (8 - length))).min(256) {
                    table.short[place] =
                        (length as u8, symbols[symbol + (code - table.first_code[length]) as usize]);
                }
                code += 1;
            }
            code = (table.first_code[length] + count) << 1;
            symbol += count as usize;
        }
        table
    }
}

/// The bits between two markers.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    word: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, word: 0, count: 0 }
    }

    fn fill(&mut self) {
        while self.count <= 56 && self.at < self.bytes.len() {
            let byte = self.bytes[self.at];
            // A nought follows each 255 that is no marker.
            self.at += if byte == 0xff { 2 } else { 1 };
            self.word |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    fn take(&mut self, bits: u32) -> Result<u32, Fault> {
        if self.count < bits {
            self.fill();
            if self.count < bits {
                return Err(Fault::Damaged);
            }
        }
        if bits == 0 {
            return Ok(0);
        }
        let value = (self.word >> (64 - bits)) as u32;
        self.word <<= bits;
        self.count -= bits;
        Ok(value)
    }

    fn symbol(&mut self, table: &Table) -> Result<u8, Fault> {
        if self.count < 16 {
            self.fill();
        }
        let (length, symbol) = table.short[(self.word >> 56) as usize];
        if length > 0 {
            self.take(u32::from(length))?;
            return Ok(symbol);
        }
        for length in 9..=16usize {
            let offset = (self.word >> (64 - length)) as i32 - table.first_code[length];
            if (0..table.counts[length]).contains(&offset) {
                self.take(length as u32)?;
                let place = table.first_symbol[length] + offset as usize;
                return table.symbols.get(place).copied().ok_or(Fault::Damaged);
            }
        }
        Err(Fault::Damaged)
    }

    fn spare_bytes(&self) -> usize {
        self.bytes.len().saturating_sub(self.at) + self.count as usize / 8
    }
}

/// What a scan says of itself.
struct Scan {
    /// Index of a component, its tables.
    parts: Vec<(usize, usize, usize)>,
    from: u32,
    to: u32,
    refines: bool,
}

/// Refuses what is cut or damaged; `size` is the width and height that the decoder found.
pub(crate) fn check(bytes: &[u8], size: (usize, usize)) -> Result<(), Fault> {
    let mut tables: [[Option<Table>; 4]; 2] = Default::default();
    let (mut frame, mut restart, mut scans) = (None::<Frame>, 0usize, 0usize);
    let mut at = 2;
    loop {
        // What lies between segments is passed over, as decoders do.
        while *bytes.get(at).ok_or(Fault::Cut)? != 0xff {
            at += 1;
        }
        while *bytes.get(at).ok_or(Fault::Cut)? == 0xff {
            at += 1;
        }
        let marker = bytes[at];
        at += 1;
        match marker {
            0xd9 => return if scans > 0 { Ok(()) } else { Err(Fault::Damaged) },
            0x00 | 0x01 | 0xd0..=0xd8 => continue,
            _ => {}
        }
        let length = usize::from(be16(bytes, at).ok_or(Fault::Cut)?);
        let end = at + length;
        let body = bytes.get(at + 2..end.max(at + 2)).ok_or(Fault::Cut)?;
        at = end.max(at + 2);
        match marker {
            0xc4 => read_tables(body, &mut tables)?,
            0xc0..=0xc2 => match read_frame(body) {
                // What the scans need is then no more than the decoder's limits allow.
                Some(Header { width, height, .. }) if (width, height) != size => return Err(Fault::Damaged),
                Some(_) if frame.is_some() => return Err(Fault::Damaged),
                Some(header) => frame = Some(Frame::new(header, marker == 0xc2)),
                None => return Ok(()),
            },
            // Lossless and arithmetic coding.
            0xc3 | 0xc5..=0xcf if marker != 0xc8 && marker != 0xcc => return Ok(()),
            0xdd => restart = usize::from(be16(body, 0).ok_or(Fault::Damaged)?),
            0xda => {
                let frame = frame.as_mut().ok_or(Fault::Damaged)?;
                let scan = read_scan(body, frame).ok_or(Fault::Damaged)?;
                let (intervals, next) = intervals(bytes, at)?;
                walk(frame, &scan, &tables, restart, &intervals)?;
                at = next;
                scans += 1;
            }
            _ => {}
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn read_tables(mut body: &[u8], tables: &mut [[Option<Table>; 4]; 2]) -> Result<(), Fault> {
    while let Some((&head, rest)) = body.split_first() {
        let (counts, rest) = rest.split_at_checked(16).ok_or(Fault::Damaged)?;
        let total = counts.iter().map(|&c| usize::from(c)).sum();
        let (symbols, rest) = rest.split_at_checked(total).ok_or(Fault::Damaged)?;
        let place =
            tables.get_mut(usize::from(head >> 4)).and_then(|class| class.get_mut(usize::from(head & 15)));
        *place.ok_or(Fault::Damaged)? = Some(Table::new(counts, symbols));
        body = rest;
    }
    Ok(())
}

/// What a frame says of itself, when it is one whose scans are followed here.
struct Header {
    width: usize,
    height: usize,
    /// Name of each component, its samples across and down.
    components: Vec<(u8, usize, usize)>,
}

fn read_frame(body: &[u8]) -> Option<Header> {
    let (height, width) = (usize::from(be16(body, 1)?), usize::from(be16(body, 3)?));
    let entries = body.get(6..)?.as_chunks::<3>().0.iter().take(usize::from(body[5]));
    let mut components: Vec<(u8, usize, usize)> = entries
        .map(|&[id, sampling, _]| (id, usize::from(sampling >> 4), usize::from(sampling & 15)))
        .collect();
    let sound =
        |&(_, across, down): &(u8, usize, usize)| (1..=4).contains(&across) && (1..=4).contains(&down);
    // A height of nought arrives later, in a marker of its own.
    if width == 0 || height == 0 || components.is_empty() || !components.iter().all(sound) {
        return None;
    }
    // With one component the sampling means nothing.
    if let [(_, across, down)] = components.as_mut_slice() {
        (*across, *down) = (1, 1);
    }
    Some(Header { width, height, components })
}

impl Frame {
    fn new(header: Header, progressive: bool) -> Self {
        let components = header.components.into_iter().map(|(id, horizontal, vertical)| Component {
            id,
            horizontal,
            vertical,
            stride: 0,
            known: Vec::new(),
        });
        let (width, height) = (header.width, header.height);
        let mut frame = Self { progressive, width, height, components: components.collect() };
        let (across, down) = frame.units();
        for component in &mut frame.components {
            component.stride = across * component.horizontal;
            if progressive {
                component.known = vec![0; component.stride * down * component.vertical];
            }
        }
        frame
    }

    fn most(&self) -> (usize, usize) {
        let most = |f: fn(&Component) -> usize| self.components.iter().map(f).max().unwrap_or(1);
        (most(|c| c.horizontal), most(|c| c.vertical))
    }

    /// Units of a scan with several components, across and down.
    fn units(&self) -> (usize, usize) {
        let (horizontal, vertical) = self.most();
        (self.width.div_ceil(8 * horizontal), self.height.div_ceil(8 * vertical))
    }

    /// Blocks of a scan with this component alone, across and down.
    fn blocks(&self, component: &Component) -> (usize, usize) {
        let (horizontal, vertical) = self.most();
        (
            (self.width * component.horizontal).div_ceil(8 * horizontal),
            (self.height * component.vertical).div_ceil(8 * vertical),
        )
    }
}

fn read_scan(body: &[u8], frame: &Frame) -> Option<Scan> {
    let count = usize::from(*body.first()?);
    let parts = body.get(1..1 + 2 * count)?.as_chunks::<2>().0.iter();
    let parts: Option<Vec<_>> = parts
        .map(|&[id, tables]| {
            let component = frame.components.iter().position(|c| c.id == id)?;
            Some((component, usize::from(tables >> 4 & 3), usize::from(tables & 3)))
        })
        .collect();
    let tail = body.get(1 + 2 * count..)?;
    let (from, to) = if frame.progressive { (*tail.first()?, *tail.get(1)?) } else { (0, 63) };
    let refines = frame.progressive && tail.get(2)? >> 4 > 0;
    let sound = from <= to && to < 64 && (from == 0 || count == 1) && !parts.as_ref()?.is_empty();
    let scan = Scan { parts: parts?, from: u32::from(from), to: u32::from(to), refines };
    sound.then_some(scan)
}

/// The pieces of compressed data from `at` to the next marker that is no restart, and where that is.
fn intervals(bytes: &[u8], at: usize) -> Result<(Vec<&[u8]>, usize), Fault> {
    let (mut pieces, mut start, mut here) = (Vec::new(), at, at);
    loop {
        let found = bytes.get(here..).and_then(|rest| rest.iter().position(|&b| b == 0xff));
        here += found.ok_or(Fault::Cut)?;
        match *bytes.get(here + 1).ok_or(Fault::Cut)? {
            0x00 => here += 2,
            marker @ 0xd0..=0xd7 => {
                if usize::from(marker & 7) != pieces.len() % 8 {
                    return Err(Fault::Damaged);
                }
                pieces.push(&bytes[start..here]);
                here += 2;
                start = here;
            }
            _ => {
                pieces.push(&bytes[start..here]);
                return Ok((pieces, here));
            }
        }
    }
}

/// Follows the codes of a scan.
fn walk(
    frame: &mut Frame,
    scan: &Scan,
    tables: &[[Option<Table>; 4]; 2],
    restart: usize,
    intervals: &[&[u8]],
) -> Result<(), Fault> {
    let single = scan.parts.len() == 1;
    let (across, down) =
        if single { frame.blocks(&frame.components[scan.parts[0].0]) } else { frame.units() };
    let units = across * down;
    let each = if restart == 0 { units } else { restart };
    let expected = units.div_ceil(each);
    // Some programs put a restart behind the last unit too.
    let spare_restart =
        intervals.len() == expected + 1 && intervals.last().is_some_and(|last| last.is_empty());
    if intervals.len() != expected && !spare_restart {
        return Err(Fault::Damaged);
    }
    for (index, bytes) in intervals.iter().enumerate() {
        let mut bits = Bits::new(bytes);
        let mut run = 0;
        for unit in index * each..((index + 1) * each).min(units) {
            let (column, row) = (unit % across, unit / across);
            for &(component, dc, ac) in &scan.parts {
                let component = &mut frame.components[component];
                let (wide, high) = if single { (1, 1) } else { (component.horizontal, component.vertical) };
                for place in 0..wide * high {
                    let (x, y) = (column * wide + place % wide, row * high + place / wide);
                    let known = component.known.get_mut(y * component.stride + x);
                    let tables = (tables[0][dc].as_ref(), tables[1][ac].as_ref());
                    if frame.progressive {
                        let known = known.ok_or(Fault::Damaged)?;
                        progressive_block(&mut bits, scan, tables, known, &mut run)?;
                    } else {
                        sequential_block(&mut bits, tables)?;
                    }
                }
            }
        }
        if bits.spare_bytes() > SPARE_BYTES {
            return Err(Fault::Damaged);
        }
    }
    Ok(())
}

type Tables<'a> = (Option<&'a Table>, Option<&'a Table>);

/// The first coefficient of a block: a length, and so many bits.
fn first(bits: &mut Bits<'_>, table: Option<&Table>) -> Result<(), Fault> {
    let length = bits.symbol(table.ok_or(Fault::Damaged)?)?;
    if length > 16 {
        return Err(Fault::Damaged);
    }
    bits.take(u32::from(length)).map(drop)
}

fn sequential_block(bits: &mut Bits<'_>, (dc, ac): Tables<'_>) -> Result<(), Fault> {
    first(bits, dc)?;
    let ac = ac.ok_or(Fault::Damaged)?;
    let mut place = 1;
    while place < 64 {
        let symbol = bits.symbol(ac)?;
        let (zeros, length) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        match (zeros, length) {
            (15, 0) => place += 16,
            (_, 0) => return Ok(()),
            _ => {
                place += zeros + 1;
                bits.take(length)?;
            }
        }
        if place > 64 {
            return Err(Fault::Damaged);
        }
    }
    Ok(())
}

/// One block of a progressive scan; `run` blocks from here on have nothing new.
fn progressive_block(
    bits: &mut Bits<'_>,
    scan: &Scan,
    (dc, ac): Tables<'_>,
    known: &mut u64,
    run: &mut u32,
) -> Result<(), Fault> {
    if scan.from == 0 {
        return if scan.refines { bits.take(1).map(drop) } else { first(bits, dc) };
    }
    let ac = ac.ok_or(Fault::Damaged)?;
    let mut place = scan.from;
    while place <= scan.to && *run == 0 {
        let symbol = bits.symbol(ac)?;
        let (mut zeros, length) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if length == 0 && zeros < 15 {
            *run = (1 << zeros) + bits.take(zeros)?;
            break;
        }
        bits.take(length)?;
        if !scan.refines {
            place += zeros;
            if place > scan.to {
                return Err(Fault::Damaged);
            }
            *known |= u64::from(length > 0) << place;
            place += 1;
            continue;
        }
        // Coefficients that are known already get a bit each and do not count as zeros.
        while place <= scan.to {
            if *known >> place & 1 == 1 {
                bits.take(1)?;
            } else if zeros == 0 {
                *known |= u64::from(length > 0) << place;
                place += 1;
                break;
            } else {
                zeros -= 1;
            }
            place += 1;
        }
    }
    if *run > 0 {
        *run -= 1;
        if scan.refines && place <= scan.to {
            let rest = *known >> place & (u64::MAX >> (63 - (scan.to - place)));
            for _ in 0..rest.count_ones() {
                bits.take(1)?;
            }
        }
    }
    Ok(())
}
