use super::writer::ThriftWriter;
use super::*;

const PROTOCOLS: [ThriftProtocol; 2] = [ThriftProtocol::Binary, ThriftProtocol::Compact];

fn reader(bytes: &[u8], protocol: ThriftProtocol) -> ThriftReader<'_> {
    ThriftReader::new(bytes, protocol, "test")
}

fn problem(error: DecodeError) -> &'static str {
    let DecodeError::Thrift { problem, document: "test", .. } = error else { panic!("{error}") };
    problem
}

/// The error of skipping a value of this type.
fn not_skipped(bytes: &[u8], protocol: ThriftProtocol, kind: ThriftType) -> &'static str {
    problem(reader(bytes, protocol).skip(kind).unwrap_err())
}

/// A struct with a field of each type, under numbers that need the short and the long header of compact.
fn of_all_types(out: &mut ThriftWriter) {
    out.structure(|out| {
        out.truth_field(1, true);
        out.truth_field(2, false);
        out.field(ThriftType::Byte, 3);
        out.out.push(7);
        out.field(ThriftType::I16, 400);
        out.i16(i16::MIN);
        out.field(ThriftType::I32, 401);
        out.i32(i32::MIN);
        out.field(ThriftType::I64, -5);
        out.i64(i64::MIN);
        out.field(ThriftType::Double, 10);
        out.double(0.5);
        out.field(ThriftType::String, 11);
        out.string(b"text");
        out.field(ThriftType::Set, 12);
        out.list(ThriftType::Bool, 2);
        out.out.extend([1, 2]);
        out.field(ThriftType::Map, 13);
        out.map(ThriftType::I32, ThriftType::List, 1);
        out.i32(-1);
        out.list(ThriftType::Struct, 20);
        for number in 0..20 {
            out.structure(|out| out.truth_field(1, number % 2 == 0));
        }
        out.field(ThriftType::Map, 14);
        out.map(ThriftType::Unknown, ThriftType::Unknown, 0);
        out.field(ThriftType::List, 15);
        out.list(ThriftType::Unknown, 0);
        out.field(ThriftType::Uuid, 16);
        out.out.extend([0xff; 16]);
        out.field(ThriftType::I64, i16::MAX);
        out.i64(1);
    });
}

#[test]
fn the_example_of_the_first_page() {
    for (protocol, bytes) in
        [(ThriftProtocol::Binary, &b"\x0a\0\x01\0\0\0\0\0\0\0\x02\x02\0\x05\x01\0"[..]), (ThriftProtocol::Compact, b"\x16\x04\x41\0")]
    {
        let (mut reader, mut previous) = (reader(bytes, protocol), 0);
        assert_eq!(reader.field(&mut previous), Ok(Some((ThriftType::I64, 1))));
        assert_eq!(reader.i64(), Ok(2));
        assert_eq!(reader.field(&mut previous), Ok(Some((ThriftType::Bool, 5))));
        assert_eq!(reader.truth(), Ok(true));
        assert_eq!(reader.field(&mut previous), Ok(None));
        assert!(reader.is_at_end());
    }
}

#[test]
fn integers_of_compact_are_zigzag_and_fit_their_type() {
    let integers = |bytes: &[u8]| {
        let reader = reader(bytes, ThriftProtocol::Compact);
        (reader.clone().i16().map_err(problem), reader.clone().i32().map_err(problem), reader.clone().i64().map_err(problem))
    };
    assert_eq!(integers(&[0]), (Ok(0), Ok(0), Ok(0)));
    assert_eq!(integers(&[1]), (Ok(-1), Ok(-1), Ok(-1)));
    assert_eq!(integers(&[0xac, 0x02]), (Ok(150), Ok(150), Ok(150)));
    let out_of_range = "integer out of range of its type";
    assert_eq!(integers(&[0xff, 0xff, 0xff, 0xff, 0x0f]), (Err(out_of_range), Ok(i32::MIN), Ok(i64::from(i32::MIN))));
    let lowest = [&[0xff; 9][..], &[1]].concat();
    assert_eq!(integers(&lowest), (Err(out_of_range), Err(out_of_range), Ok(i64::MIN)));
    let too_long = "integer longer than 64 bits";
    assert_eq!(integers(&[0xff; 11]), (Err(too_long), Err(too_long), Err(too_long)));
}

#[test]
fn values_of_all_types_are_skipped_and_no_shorter_bytes_are() {
    for protocol in PROTOCOLS {
        let mut writer = ThriftWriter::new(protocol);
        of_all_types(&mut writer);
        let mut whole = reader(&writer.out, protocol);
        whole.skip(ThriftType::Struct).unwrap();
        assert!(whole.is_at_end(), "{protocol:?}");
        for cut in 0..writer.out.len() {
            assert_eq!(not_skipped(&writer.out[..cut], protocol, ThriftType::Struct), "bytes end inside a value", "{protocol:?} {cut}");
        }
    }
}

#[test]
fn sizes_beyond_the_bytes_are_errors() {
    let (binary, compact) = (ThriftProtocol::Binary, ThriftProtocol::Compact);
    let ends = "bytes end inside a value";
    for kind in [ThriftType::String, ThriftType::List, ThriftType::Set, ThriftType::Map] {
        let types: &[u8] = match kind {
            ThriftType::String => &[],
            ThriftType::Map => &[2, 2],
            _ => &[2],
        };
        assert_eq!(not_skipped(&[types, &[0x7f, 0xff, 0xff, 0xff, 1]].concat(), binary, kind), ends);
        assert_eq!(not_skipped(&[types, &[0xff; 4]].concat(), binary, kind), "length below zero");
    }
    for (kind, before, behind) in
        [(ThriftType::String, &[][..], 1), (ThriftType::List, &[0xf1], 1), (ThriftType::Set, &[0xf1], 1), (ThriftType::Map, &[], 0x11)]
    {
        let size = |size: &[u8]| not_skipped(&[before, size, &[behind, 1]].concat(), compact, kind);
        assert_eq!(size(&[0xff, 0xff, 0xff, 0xff, 0x0f]), ends);
        assert_eq!(size(&[0xff, 0xff, 0xff, 0xff, 0x1f]), "length of more than 32 bits");
        assert_eq!(size(&[0xff; 10]), "integer longer than 64 bits");
    }
}

#[test]
fn what_nests_too_deep_or_has_no_type_is_an_error() {
    // Lists of one list each.
    let nested = |depth: usize, list: &[u8], last: &[u8]| [list.repeat(depth - 1), last.to_vec()].concat();
    for (protocol, list, last) in
        [(ThriftProtocol::Binary, &[15, 0, 0, 0, 1][..], &[3, 0, 0, 0, 1, 9][..]), (ThriftProtocol::Compact, &[0x19], &[0x13, 9])]
    {
        assert_eq!(reader(&nested(THRIFT_NESTING_MAX, list, last), protocol).skip(ThriftType::List), Ok(()));
        assert_eq!(not_skipped(&nested(THRIFT_NESTING_MAX + 1, list, last), protocol, ThriftType::List), "fields nested too deep");
        assert_eq!(not_skipped(&list.repeat(100_000), protocol, ThriftType::List), "fields nested too deep");
    }
    assert_eq!(not_skipped(&[17, 0, 1, 0, 0], ThriftProtocol::Binary, ThriftType::Struct), "unknown type of a field");
    assert_eq!(not_skipped(&[0x1e, 0, 0], ThriftProtocol::Compact, ThriftType::Struct), "unknown type of a field");
    // A difference to the field before, without a type, is not the end of a struct.
    assert_eq!(not_skipped(&[0x10, 0], ThriftProtocol::Compact, ThriftType::Struct), "unknown type of a field");
    let beyond = [0x03, 0xfe, 0xff, 0x03, 9, 0x13, 9, 0];
    assert_eq!(not_skipped(&beyond, ThriftProtocol::Compact, ThriftType::Struct), "field number out of range");
}

#[test]
fn messages_have_a_version_a_kind_and_a_name() {
    let message = |bytes: &[u8], protocol| {
        let mut reader = reader(bytes, protocol);
        reader.message().map(|header| (header.kind, String::from_utf8_lossy(header.name).into_owned(), reader.is_at_end())).map_err(problem)
    };
    for protocol in PROTOCOLS {
        let mut writer = ThriftWriter::new(protocol);
        writer.message(4, "emitBatch", 7);
        assert_eq!(message(&writer.out, protocol), Ok((4, "emitBatch".to_owned(), true)));
        for cut in 0..writer.out.len() {
            assert_eq!(message(&writer.out[..cut], protocol), Err("bytes end inside a value"));
        }
    }
    let binary = |bytes| message(bytes, ThriftProtocol::Binary);
    assert_eq!(binary(b"\0\0\0\x02do\x01\0\0\0\x07"), Ok((1, "do".to_owned(), true)), "without a version, as older programs write it");
    assert_eq!(binary(b"\x80\x02\0\x01\0\0\0\x02do\0\0\0\x07"), Err("unknown version of the binary protocol"));
    let compact = |bytes| message(bytes, ThriftProtocol::Compact);
    assert_eq!(compact(b"\x82\x82\x07\x02do"), Err("unknown version of the compact protocol"));
    assert_eq!(compact(b"\x82\x21\xff\xff\xff\xff\x0f\x02do"), Ok((1, "do".to_owned(), true)), "the sequence number -1");
}
