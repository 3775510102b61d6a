/** The recordings of tests and browser stories: a deployment, and odd ones. */
import { FLAG, recordingDocuments, span } from './documents.mjs';

const HOUR = 3600n * 1_000_000_000n;
const NOON = 1_795_262_400n * 1_000_000_000n;

const START = ['_start', '__libc_start_main', 'main', 'std::rt::lang_start_internal @ library/std/src/rt.rs:174'];
const TOKIO = [
  '__clone3',
  'start_thread',
  'std::sys::thread::unix::Thread::new::thread_start @ library/std/src/sys/thread/unix.rs:118',
  '<alloc::boxed::Box<dyn core::ops::function::FnOnce<()>> as core::ops::function::FnOnce<()>>::call_once @ library/alloc/src/boxed.rs:2242',
  'tokio::runtime::scheduler::multi_thread::worker::run @ tokio/src/runtime/scheduler/multi_thread/worker.rs:596',
  'tokio::runtime::task::harness::Harness<T,S>::poll @ tokio/src/runtime/task/harness.rs:153',
];
const BUILD = [
  ...TOKIO,
  'provider_build::serve::{{closure}} @ examples/deploy/src/provider_build.rs:71',
  'provider_build::bundle::pack @ examples/deploy/src/bundle.rs:38',
];

/** Stacks under `pack`: most of the time is in one function, as in a real hot loop. */
function bundleCode(scale) {
  const n = (count) => Math.max(1, Math.round(count * scale));
  const compress = [...BUILD, 'provider_build::bundle::compress_archive @ examples/deploy/src/bundle.rs:92'];
  const hash = [...compress, 'provider_build::bundle::hash_block @ examples/deploy/src/bundle.rs:118'];
  return [
    [hash, n(1610)],
    [[...hash, 'core::num::<impl u64>::rotate_left @ library/core/src/num/mod.rs:212'], n(180)],
    [[...hash, 'core::num::<impl u64>::wrapping_mul @ library/core/src/num/mod.rs:212'], n(96)],
    [compress, n(64)],
    [[...compress, 'alloc::vec::Vec<T,A>::extend_from_slice @ library/alloc/src/vec/mod.rs:2571', '__memmove_avx_unaligned_erms'], n(88)],
    [[...BUILD, 'provider_build::bundle::read_sources @ examples/deploy/src/bundle.rs:55'], n(31)],
    [
      [
        ...BUILD,
        'provider_build::bundle::read_sources @ examples/deploy/src/bundle.rs:55',
        'std::fs::read @ library/std/src/fs.rs:298',
        '__read',
      ],
      n(22),
    ],
    [[...BUILD, 'provider_build::bundle::walk @ examples/deploy/src/bundle.rs:47', 'libz.so.1+0x4a10'], n(19)],
    [
      [
        ...BUILD,
        '<provider_build::bundle::Manifest as serde::ser::Serialize>::serialize @ examples/deploy/src/bundle.rs:20',
        'serde_json::ser::format_escaped_str @ src/ser.rs:2085',
      ],
      n(44),
    ],
  ];
}

const RECORD = 'deploy_engine::state::StateFile::record';

/** Waits for the lock of the state file, and below them waits for the file itself. */
function recordWaits(lockMillis, diskMillis) {
  const record = [...START, 'deploy_engine::main @ examples/deploy/src/engine.rs:12', `${RECORD} @ examples/deploy/src/state.rs:41`];
  const futex = ['std::sync::poison::mutex::Mutex<T>::lock @ library/std/src/sync/poison/mutex.rs:414', 'syscall'];
  return [
    { kind: 'lock', syscall: 'futex', millis: lockMillis, function: RECORD, stack: [...record, ...futex] },
    { kind: 'disk', syscall: 'fsync', millis: diskMillis, function: RECORD, stack: [...record, 'std::fs::File::sync_all', 'fsync'] },
  ];
}

/** A stack deeper than a screen: a recursion over nested values. */
const deep = [
  ...START,
  'deploy_host::main @ examples/deploy/src/host.rs:12',
  ...Array.from({ length: 34 }, (_, level) => `deploy_host::program::visit_${level} @ examples/deploy/src/host.rs:${140 + level}`),
];

const hostCode = [
  [[...deep, 'deploy_host::program::resolve @ examples/deploy/src/host.rs:201'], 38],
  [
    [
      ...START,
      'deploy_host::main @ examples/deploy/src/host.rs:12',
      'deploy_host::program::parse @ examples/deploy/src/host.rs:88',
      'serde_json::de::from_str @ src/de.rs:2698',
    ],
    61,
  ],
  [[...START, 'deploy_host::main @ examples/deploy/src/host.rs:12', 'deploy_host::program::check @ examples/deploy/src/host.rs:120'], 143],
  [
    [
      ...START,
      'deploy_host::main @ examples/deploy/src/host.rs:12',
      'deploy_host::program::check @ examples/deploy/src/host.rs:120',
      'hashbrown::map::HashMap<K,V,S,A>::insert @ src/map.rs:1790',
    ],
    52,
  ],
];
const planCode = [
  [
    [
      ...START,
      'deploy_engine::plan::order @ examples/deploy/src/plan.rs:30',
      'deploy_engine::plan::visit @ examples/deploy/src/plan.rs:61',
      'deploy_engine::plan::visit @ examples/deploy/src/plan.rs:61',
      'deploy_engine::plan::visit @ examples/deploy/src/plan.rs:61',
    ],
    17,
  ],
];

const attribute = (key, value) => ({ key, value });
/** Allocates memory all its life, until a signal kills it. */
const growing = {
  pid: 4120,
  name: 'make',
  arguments: ['make', 'test'],
  exit: { code: null, signal: 9 },
  usage: {
    cpu_nanos: 850_000_000,
    peak_resident_bytes: 640_000_000,
    peak_from: 'reading',
    minor_faults: 180_412,
    major_faults: 31,
    read_bytes: 52_000_000,
    written_bytes: 1_250_000,
    storage_read_bytes: 4_096_000,
    storage_written_bytes: 1_251_000,
    read_before_end_nanos: 12_000_000,
    grows: { from_bytes: 81_000_000, to_bytes: 632_000_000 },
    readings: {
      time_nanos: [...Array(60)].map((_, index) => (5 + index * 15) * 1e6),
      resident_bytes: [...Array(60)].map((_, index) => 12_000_000 + Math.floor(index / 3) * 32_000_000),
    },
  },
};

const processOf = (pid, name, ...rest) => ({ pid, name, arguments: [`target/debug/${name}`, ...rest] });

function createResource(name, type, start, duration, options, children = []) {
  return span(
    'deploy-engine',
    `create ${name}`,
    start,
    duration,
    {
      declared: true,
      attributes: [attribute('resource.name', name), attribute('resource.type', type), attribute('resource.parallel', true)],
      ...options,
    },
    children,
  );
}

/** The story of the demo: four processes, and `web-bundle` is the long pole because of one function. */
const deploy = {
  recording: 'r7',
  command: ['target/debug/deploy', 'up', '--stack', 'staging'],
  startUnixNano: NOON,
  wall: 6024,
  parallelism: { mean: 1.9, peak: 5 },
  unlinked: 38,
  traces: 1,
  quality: [
    {
      code: 'stacks_truncated',
      count: 12,
      detail: 'deeper than the 16 KiB that were copied: callers above are missing',
    },
    {
      code: 'symbols_unreadable',
      count: 1,
      detail: 'libz.so.1 (stripped); their code shows as libz.so.1+0xADDRESS',
    },
  ],
  notes: [{ code: 'limited_slots', count: 1, detail: 'replicas start one at a time: what one of them saves is a range' }],
  roots: [
    span(
      'deploy',
      'deploy up --stack staging',
      0,
      6024,
      { flags: FLAG.process, process: processOf(4100, 'deploy', 'up', '--stack', 'staging') },
      [
        span(
          'deploy-engine',
          'deploy',
          14,
          5998,
          { declared: true, attributes: [attribute('stack', 'staging'), attribute('resources', 9)] },
          [
            span('deploy-engine', 'start language host', 18, 402, {}, [
              span(
                'deploy-host',
                'deploy-host',
                22,
                5980,
                { flags: FLAG.process | FLAG.inferred, process: processOf(4102, 'deploy-host') },
                [
                  span('deploy-host', 'run program', 60, 338, {
                    code: hostCode,
                    attributes: [attribute('program.path', 'stack/index.json'), attribute('program.resources', 9)],
                  }),
                ],
              ),
            ]),
            span('deploy-engine', 'plan', 421, 74, {
              code: planCode,
              declared: true,
              attributes: [attribute('plan.steps', 9)],
            }),
            createResource('network', 'cloud:Network', 498, 806, {}, [
              span(
                'provider-cloud',
                'provider-cloud',
                500,
                5520,
                { flags: FLAG.process | FLAG.inferred, process: processOf(4107, 'provider-cloud') },
                [],
              ),
              span('provider-cloud', 'await network ready', 540, 752, {
                kind: 'client',
                declared: true,
                attributes: [attribute('cloud.region', 'eu-north-1'), attribute('http.request.method', 'POST')],
              }),
            ]),
            createResource('web-bundle', 'build:Bundle', 499, 2412, { linksTo: [] }, [
              span(
                'provider-build',
                'provider-build',
                503,
                5515,
                { flags: FLAG.process | FLAG.inferred, process: processOf(4109, 'provider-build') },
                [],
              ),
              span('provider-build', 'pack bundle', 530, 2374, {
                declared: true,
                code: bundleCode(1),
                saves: 2106,
                limitedBy: 'create migrate',
                attributes: [
                  attribute('bundle.files', 1841),
                  attribute('bundle.bytes', 88_403_211),
                  attribute('bundle.path', 'web/dist'),
                  attribute('bundle.exclude', ['*.map', '*.test.js']),
                ],
                events: [
                  { time_nanos: 611e6, name: 'sources read', attributes: [attribute('files', 1841)] },
                  { time_nanos: 2878e6, name: 'archive written', attributes: [attribute('bytes', 22_114_003)] },
                ],
              }),
            ]),
            createResource('config', 'cloud:Config', 499, 91, {}),
            createResource('secrets', 'cloud:Secret', 1305, 218, { linksTo: ['create network'] }, [
              span('provider-cloud', 'wait for lock secrets', 1311, 160, { declared: true }),
            ]),
            createResource('db', 'cloud:Database', 1306, 1391, { linksTo: ['create network'] }, [
              span('provider-cloud', 'await db ready', 1330, 1352, {
                kind: 'client',
                declared: true,
                attributes: [attribute('cloud.region', 'eu-north-1'), attribute('db.size_gib', 20)],
              }),
            ]),
            createResource('api-bundle', 'build:Bundle', 1306, 512, {}, [
              span('provider-build', 'pack bundle', 1320, 488, { declared: true, code: bundleCode(0.19) }),
            ]),
            createResource(
              'migrate',
              'cloud:Job',
              2700,
              300,
              { linksTo: ['create db'], flags: FLAG.error, message: 'attempt 1: relation "orders" is locked' },
              [
                span('provider-cloud', 'run migration', 2712, 281, {
                  flags: FLAG.error,
                  message: 'relation "orders" is locked',
                  events: [
                    {
                      time_nanos: 2990e6,
                      name: 'exception',
                      attributes: [
                        attribute('exception.type', 'LockTimeout'),
                        attribute('exception.message', 'relation "orders" is locked'),
                      ],
                    },
                  ],
                }),
              ],
            ),
            createResource('cdn', 'cloud:Distribution', 2914, 1702, { linksTo: ['create web-bundle'] }, [
              span('provider-cloud', 'upload', 2926, 604, { kind: 'client', declared: true, saves: 590 }),
              span('provider-cloud', 'await distribution ready', 3534, 1074, {
                kind: 'client',
                declared: true,
                saves: 1050,
                waits: [{ kind: 'network', syscall: 'recvfrom', millis: 1020, function: null, stack: null }],
              }),
            ]),
            createResource('service', 'cloud:Service', 4619, 1290, { linksTo: ['create cdn', 'create db', 'create api-bundle'] }, [
              ...Array.from({ length: 12 }, (_, replica) =>
                span('provider-cloud', 'start replica', 4630 + replica * 104, 101, {
                  lowShare: 0,
                  attributes: [attribute('replica', replica)],
                  waits: [
                    { kind: 'sleep', syscall: 'clock_nanosleep', millis: 20, function: 'provider_cloud::replica::settle', stack: null },
                  ],
                }),
              ),
            ]),
            span('deploy-engine', 'write state', 5914, 92, { waits: recordWaits(71, 12), attributes: [attribute('state.bytes', 40_112)] }),
          ],
        ),
      ],
    ),
  ],
};

/** One process, nothing else. */
const single = {
  recording: 'r6',
  command: ['true'],
  startUnixNano: NOON - HOUR,
  wall: 1.4,
  cpu: null,
  roots: [span('true', 'true', 0, 1.4, { flags: FLAG.process, process: { pid: 390, name: 'true', arguments: ['true'] } })],
};

/** 100,001 spans, most of them children of one parent, and a chain 300 deep. */
function many() {
  const requests = Array.from({ length: 33_233 }, (_, index) => {
    const start = 20 + index * 0.9 + ((index * 7919) % 13);
    const duration = 0.4 + ((index * 104_729) % 97) / 12;
    return span('shop', `GET /cart/${index % 40}`, start, duration, { flags: index % 911 === 0 ? FLAG.error : 0 }, [
      span('shop', 'authorize', start + duration * 0.05, duration * 0.2),
      span('db', 'SELECT carts', start + duration * 0.3, duration * 0.6),
    ]);
  });
  let chain = span('shop', 'level 300', 30_000, 1);
  for (let level = 299; level > 0; level--)
    chain = span('shop', `level ${level}`, 30_000 - (300 - level) * 0.1, 1 + (300 - level) * 0.2, {}, [chain]);
  return {
    recording: 'r5',
    command: ['cargo', 'run', '--release', '--', 'load-test', '--requests', '33000'],
    startUnixNano: NOON - 3n * HOUR,
    wall: 30_100,
    exit: { code: 1, signal: null },
    parallelism: { mean: 4.2, peak: 19 },
    roots: [span('load-test', 'load-test', 0, 30_100, { flags: FLAG.process }, [...requests, chain])],
  };
}

/** Profiling was not allowed, and the trace is full of oddities. */
const odd = {
  recording: 'r4',
  command: ['sh', '-c', 'make test | tee log'],
  startUnixNano: NOON - 30n * HOUR,
  wall: 912,
  mode: 'refused',
  cpu: null,
  exit: { code: null, signal: 9 },
  quality: [
    {
      code: 'profiling_refused',
      count: 1,
      detail: 'kernel.perf_event_paranoid is 3: run `sysctl kernel.perf_event_paranoid=2` as root',
    },
    { code: 'spans_invalid', count: 3, detail: 'no valid trace id' },
  ],
  usage: [{ code: 'grows', handle: 's2', process: 'make', amount: 632_000_000, text: 'make grows all the time, from 81 MB to 632 MB' }],
  notes: [
    { code: 'orphans', count: 1, detail: 'they are shown below their process, or the run' },
    { code: 'cycles', count: 1, detail: 'the cycle is cut at its earliest span' },
    { code: 'ends_clamped', count: 1, detail: 'their end was moved to the start' },
  ],
  roots: [
    span('sh', 'sh -c make test | tee log', 0, 912, { flags: FLAG.process }, [
      span('make', 'make test', 4, 900, { flags: FLAG.process | FLAG.inferred, process: growing }, [
        span('make', 'link', 500, 390, { flags: FLAG.error, message: 'collect2: error: ld returned 1 exit status' }),
        span('make', 'compile a very long operation name that certainly does not fit into the column of names at all', 10, 480, {
          flags: FLAG.clamped,
        }),
      ]),
      span('tee', 'tee log', 5, 902, { flags: FLAG.process | FLAG.inferred }),
    ]),
    span('worker', 'handle job', 100, 220, { flags: FLAG.orphan }, [span('worker', 'zero length', 120, 0)]),
    span('worker', 'retry', 300, 50, { flags: FLAG.cycle }),
  ],
};

const killed = {
  recording: 'r3',
  command: ['cargo', 'build'],
  startUnixNano: NOON - 80n * HOUR,
  wall: 4100,
  exit: null,
  state: 'killed',
  quality: [{ code: 'recorder_killed', count: 1, detail: 'everything acknowledged before is here; what came after is not' }],
  roots: [
    span('cargo', 'cargo build', 0, 4100, {
      flags: FLAG.process,
      code: [[['_start', 'main', 'cargo::ops::compile @ src/cargo/ops/mod.rs:10'], 11]],
    }),
  ],
};

/** The work on a resource of the Pulumi deployment: a registration, in it the engine's call, in that the provider. */
function register(type, name, start, duration, options = {}) {
  const urn = `urn:pulumi:staging::shop::${type}::${name}`;
  const create = 'pulumirpc.ResourceProvider/Create';
  return span('pulumi-cli', 'pulumirpc.ResourceMonitor/RegisterResource', start, duration, { urn, declared: true, ...options }, [
    span('pulumi-cli', create, start + 4, duration - 8, { declared: true }, [
      span('pulumi-resource-provider', create, start + 6, duration - 12, {
        declared: true,
        attributes: [attribute('rpc.system', 'grpc'), attribute('pulumi.resource.urn', urn)],
      }),
    ]),
  ]);
}

/** The real Pulumi, with a long path: a database in the cloud is the long pole. */
const pulumi = {
  recording: 'r2',
  command: ['/home/ada/.pulumi/versions/3.259.0/linux-x64/bin/pulumi', 'up', '--yes', '--non-interactive', '--stack', 'staging'],
  startUnixNano: NOON - 200n * HOUR,
  wall: 5230,
  parallelism: { mean: 2.1, peak: 4, work_nanos: 9_000_000_000, span_nanos: 4_300_000_000 },
  deployment: { cloud_wait: 4110, provider: 120, engine: 402, language_host: 318, plugin_start: 246, state_backend: 3 },
  quality: [{ code: 'resources_unmatched', count: 2, detail: 'the longest first: create shop:Database orders (2.10s)' }],
  roots: [
    span(
      'pulumi',
      'pulumi',
      0,
      5230,
      { flags: FLAG.process, process: { pid: 812, name: 'pulumi', arguments: ['pulumi', 'up', '--yes'] } },
      [
        span('pulumi-cli', 'pulumi', 12, 5190, { attributes: [attribute('pulumi.version', '3.259.0')] }, [
          span('pulumi-cli', 'newPlugin', 20, 240, {}, [span('pulumi-cli', 'testConnection', 40, 200)]),
          span('pulumi-cli', 'pulumi-plan', 270, 4900, {}, [
            span('pulumi-language-yaml', 'pulumirpc.LanguageRuntime/Run', 280, 4880, {}, [
              register('aws:ec2/vpc:Vpc', 'network', 420, 800),
              register('aws:rds/instance:Instance', 'orders-database-primary', 1230, 3080, { linksTo: [] }),
              register('aws:ec2/securityGroupRule:SecurityGroupRule', 'web-ingress', 1231, 240),
              register('aws:ecs/service:Service', 'shop', 4320, 780),
            ]),
          ]),
          span('pulumi-cli', 'gocloud.dev/blob.NewWriter', 5175, 3),
        ]),
      ],
    ),
  ],
};

/** A file of 2,000 traces: most pay for a cart, the others read it. Some payments fail, some wait for the stock. */
function load() {
  const traces = Array.from({ length: 2000 }, (_, index) => {
    const start = 3 + index * 31;
    // From 0 to 1, evenly, and without a period that a reader would see.
    const luck = ((index * 7919) % 2000) / 2000;
    if (index % 5 > 2) {
      const duration = 4 + 9 * luck ** 2;
      return span('shop', 'GET /cart', start, duration, {}, [span('cart', 'SELECT items', start + duration * 0.2, duration * 0.6)]);
    }
    const isSlow = luck > 0.9;
    const pay = 14 + 60 * luck ** 3;
    const stock = isSlow ? 180 + 2000 * (luck - 0.9) : 2 + 6 * luck;
    const flags = index % 97 === 0 ? FLAG.error : 0;
    return span('shop', 'POST /checkout', start, pay + stock + 4, { flags }, [
      span('stock', 'SELECT stock FOR UPDATE', start + 1, stock),
      span('payment', 'charge card', start + stock + 2, pay, { flags }, [span('payment', 'sign request', start + stock + 3, 0.4)]),
    ]);
  });
  return {
    recording: 'r1',
    command: ['load-test.jsonl'],
    startUnixNano: NOON - 300n * HOUR,
    wall: 62_200,
    summarised: 'file',
    mode: 'off',
    cpu: null,
    exit: null,
    traces: traces.length,
    parallelism: { mean: 1.9, peak: 9 },
    roots: [span('run', 'load-test.jsonl', 0, 62_200, { flags: FLAG.process }, traces)],
  };
}

/** Every recording, newest first. */
export function allRecordings() {
  return [deploy, single, many(), odd, killed, pulumi, load()].map(recordingDocuments);
}

/** Only the file of many traces. */
export function loadRecording() {
  return recordingDocuments(load());
}

/** Only the deployment. */
export function deployRecording() {
  return recordingDocuments(deploy);
}
