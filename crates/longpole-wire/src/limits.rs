//! Every maximum a decoder obeys, with its reason. The size of a request is limited before, by the server.

/// Attribute values inside each other: a value that is not a list has depth 1, a list of texts has depth 2.
///
/// Instrumentation nests once or twice. The limit keeps the stack of the recursive walk small (about 10 KiB at 32) and is
/// below serde_json's own limit of 128 brackets, so that both encodings refuse the same trees. The OpenTelemetry
/// Collector has no such limit of its own; its protobuf library stops at 10,000.
pub const NESTING_MAX: u32 = 32;

/// Messages (attributes, events, links, elements of lists) inside one span, resource or scope.
///
/// SDKs keep 128 attributes, events and links of a span unless told otherwise. This is 1,000 times that, and bounds the
/// scratch memory of one span to 50 MB, because two bytes of input can ask for an attribute of 48 bytes.
pub const VALUES_MAX: u32 = 1 << 20;

/// Bytes for each value of a request in JSON: 8, where `{"intValue":1},` has 15 and an attribute with its value 17 for each of the two.
///
/// A request is read as a whole, and an attribute takes 56 bytes then, also one that is written as `{},`.
pub const JSON_BYTES_A_VALUE: u64 = 8;

/// Values that any such request may have: lists of a few values that are not set are no attack.
pub const JSON_VALUES_MIN: u64 = 1 << 16;

/// Bytes for each struct in the lists of a document of Thrift's binary protocol, where the smallest that says something has 19.
///
/// A struct without fields has one byte, and takes 100 times as long to read as another byte.
pub const THRIFT_BYTES_A_STRUCT: usize = 16;

/// Structs that any such document may have.
pub const THRIFT_STRUCTS_MIN: usize = 1 << 16;

/// Bytes for each message in a request of protobuf that is read as a whole: 8, where an annotation with its time has 11.
pub const PROTOBUF_BYTES_A_MESSAGE: usize = 8;

/// Messages that any such request may have.
pub const PROTOBUF_MESSAGES_MIN: usize = 1 << 16;

/// Groups inside each other in unknown fields. OTLP has no groups; the walk over them must still end.
pub const GROUP_NESTING_MAX: u32 = 32;

/// Structs, lists and maps inside each other in unknown fields of Thrift. The structs of Zipkin nest three deep, those of Jaeger five.
pub const THRIFT_NESTING_MAX: usize = 32;

/// One AppDash packet, and one value in an AppDash file: 64 MiB.
///
/// The reference server drops a connection at 1 MiB, which payload logs of real deployments exceed; gRPC lets a payload be
/// 400 MB. What is larger is skipped and counted: nothing of a payload is kept but a few names at its start.
pub const PACKET_BYTES_MAX: usize = 64 << 20;

/// Annotations of AppDash spans of one connection that are still waiting for their times: 64 MiB, for the reason above.
/// Clients send all packets of a span in a row, so that one span waits at a time.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// Such spans of one connection. One without annotations takes no bytes of those, but a place in memory.
pub const WAITING_SPANS_MAX: usize = 4_096;

/// A JSON document, or a line of a file of JSON lines, which is held in memory as a whole: 1 GiB.
///
/// The largest single documents people have are Jaeger's downloads of one trace, some 100 MB. Lines are what one export
/// request held, a few MB.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 30;

/// Spans of one request of Zipkin, which are all in memory at once: 131,072, some 80 MB.
///
/// Reporters send 100 to 1,000 at a time. A span takes 650 bytes, also one that is written as `{},`.
pub const ZIPKIN_SPANS_MAX: usize = 1 << 17;

/// Bytes of a file of Zipkin for each of its spans: 40, where two ids have 49. A file may have more spans than a request.
pub const ZIPKIN_FILE_BYTES_A_SPAN: usize = 40;

/// Attributes of one resource or scope, which each of its spans is stored with.
///
/// The detectors of a cloud, a cluster, a host and a process set about 60 together, and SDKs allow a span 128.
pub const EMITTER_ATTRIBUTES_MAX: usize = 256;

/// One text of a resource or scope, which is cut beyond: 16 KiB, such as the class path of a large Java program.
pub const EMITTER_VALUE_BYTES_MAX: usize = 16 << 10;

/// Keys and values of one resource or scope together: 64 KiB.
pub const EMITTER_BYTES_MAX: usize = 64 << 10;

/// How many times larger than what was compressed its contents may be: 100.
///
/// Spans as JSON shrink to a thirtieth, folded stacks to a fiftieth, pprof to a fifth; gzip itself goes up to a thousandth, and 1 MB
/// of it then fills a gigabyte. A user with a file that shrinks more, and trusts it, unpacks it first: a plain file may be as large as it is.
pub const EXPANSION_MAX: u64 = 100;

/// What any compressed file may hold, however small it is: 32 MiB, which takes 800 MB once it is decoded where every span is of 25 bytes.
pub const EXPANSION_FLOOR_BYTES: u64 = 32 << 20;

/// The largest contents of this number of compressed bytes.
pub fn expanded_bytes_max(compressed_bytes: u64) -> u64 {
    compressed_bytes.saturating_mul(EXPANSION_MAX).max(EXPANSION_FLOOR_BYTES)
}

/// Frames of one stack of a profile; of a deeper one the innermost are kept, and it is counted.
///
/// The kernel keeps 127 by default, Go 128, the JVM's profilers 2,048, and Python recurses 1,000 deep. A line of
/// folded stacks may have half a billion.
pub const STACK_FRAMES_MAX: usize = 4096;

/// Frames of one location of a profile: a function and the calls that were inlined into it; the innermost are kept. Compilers
/// inline some dozen deep.
pub const LOCATION_FRAMES_MAX: usize = 256;

/// Frames of calls that were inlined, of all stacks of a profile together: 32 million, at 50 bytes each in the tree of calls.
///
/// A stack names a location by a byte, and so all frames that were inlined there.
pub const PROFILE_INLINED_MAX: u32 = 1 << 25;

/// Bytes of a name of a function, file, thread or span in a profile; a longer one is cut, and ends with `…`. A path of Linux has 4,096 as
/// well, and names of C++ templates seldom more. Every format that a profile is written to repeats names for each frame.
pub const NAME_BYTES_MAX: usize = 4096;

/// The same of a type of values and of its unit: `alloc_space` in `bytes`.
pub const TYPE_NAME_BYTES_MAX: usize = 128;

/// Digits of a build id in hex: 64 bytes, where GNU's have 40 digits.
pub const BUILD_ID_DIGITS_MAX: usize = 128;

/// Stacks with values in one profile: 2 million. The merged profiles of a fleet have some hundred thousand. Each takes some 400 bytes here and
/// eight in the file.
pub const PROFILE_SAMPLES_MAX: u32 = 1 << 21;

/// Types of values of a profile; each takes a place in every sample. Those of Go's heap, the richest there are, have four.
pub const PROFILE_TYPES_MAX: u32 = 64;

/// Values of all samples of a profile together: 128 MiB.
pub const PROFILE_VALUES_MAX: u32 = 1 << 24;

/// Names of functions, files, types, threads and spans of a profile, as long as they are there and as often as a frame has them: 256 MiB.
///
/// A profile says each name once, by a number. Here each frame has its own, so that one name of 100 kB that a million frames have would
/// take 100 GB.
pub const PROFILE_NAME_BYTES_MAX: u32 = 256 << 20;

/// Bytes of all stacks of a trie, a tree or a file of speedscope, when each is written out: 256 MiB, and of a short file what a
/// compressed one of its size may hold ([`expanded_bytes_max`]). Ten seconds of a Python program with 1,000 stacks of 50 functions have 2 MB; a file of
/// 50 KB may have a stack of each length up to 16,000, which takes seconds to walk.
pub const PROFILE_PATHS_BYTES_MAX: u64 = 256 << 20;

/// Labels of one sample of a profile: 64. Pyroscope takes 30 of a series, and the detectors of OpenTelemetry set about 60 attributes of a resource.
pub const LABELS_MAX: usize = 64;

/// Bytes of the name of a label; a longer one is left out, because the beginning of a name is another name; so is one that is not UTF-8. Pyroscope has the same limit.
pub const LABEL_NAME_BYTES_MAX: usize = 1_024;

/// Bytes of the value of a label; a longer one is cut, and ends with `…`. Pyroscope has the same limit.
pub const LABEL_VALUE_BYTES_MAX: usize = 2_048;

/// Label sets of a profile: 131,072. A profile of Go has as many as there are endpoints and tenants; a program that puts ids of requests into labels
/// has one for each sample.
pub const PROFILE_LABEL_SETS_MAX: u32 = 1 << 17;

/// Bytes of all label sets of a profile, those that come again under other numbers included: 64 MiB.
pub const PROFILE_LABEL_BYTES_MAX: usize = 64 << 20;

/// Bytes of the name of an application with its labels, in the address of a request: 64 KiB, where 64 labels of 2 KiB have 128 and servers take addresses
/// of 8.
pub const APP_NAME_BYTES_MAX: usize = 64 << 10;

/// Bytes of a selector of series: 64 KiB. A regular expression with 1,000 names of pods has 40.
pub const SELECTOR_BYTES_MAX: usize = 64 << 10;

/// Matchers of a selector: 128, twice as many as a series has labels. The server compares each of them with each series.
pub const MATCHERS_MAX: usize = 128;

/// Classes inside each other in a recording of Java's flight recorder. Those of the JDK nest two deep.
pub const JFR_NESTING_MAX: u32 = 8;

/// Fields of one such class: 1,024. The largest event of the JDK has some 40.
pub const JFR_CLASS_FIELDS_MAX: usize = 1_024;

/// The maxima of a decoder that a caller may set lower, in tests above all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// See [`NESTING_MAX`].
    pub nesting_max: u32,
    /// See [`VALUES_MAX`].
    pub values_max: u32,
    /// See [`PACKET_BYTES_MAX`].
    pub packet_bytes_max: usize,
    /// See [`DOCUMENT_BYTES_MAX`].
    pub document_bytes_max: usize,
    /// See [`ZIPKIN_SPANS_MAX`].
    pub zipkin_spans_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            nesting_max: NESTING_MAX,
            values_max: VALUES_MAX,
            packet_bytes_max: PACKET_BYTES_MAX,
            document_bytes_max: DOCUMENT_BYTES_MAX,
            zipkin_spans_max: ZIPKIN_SPANS_MAX,
        }
    }
}
