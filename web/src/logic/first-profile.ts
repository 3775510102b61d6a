/** How a program of each language sends its first profile: what to install, and what to add. */
import type { FirstSteps } from './first-steps';

/** Where this server takes profiles, and whether it wants a token. */
export interface ProfileReceivers {
  readonly host: string;
  /** The port for Pyroscope's clients. */
  readonly pyroscopePort: number;
  /** The port for OTLP over gRPC. */
  readonly otlpGrpcPort: number;
  readonly needsToken: boolean;
}

/** The steps for a server. */
export function firstProfiles({ host, pyroscopePort, otlpGrpcPort, needsToken }: ProfileReceivers): readonly FirstSteps[] {
  const address = `http://${host}:${pyroscopePort}`;
  const ifToken = (text: string) => (needsToken ? text : '');
  const bearer = '"Authorization": "Bearer TOKEN"';
  return [
    {
      language: 'Go',
      steps: [
        'go get github.com/grafana/pyroscope-go',
        `pyroscope.Start(pyroscope.Config{ApplicationName: "my-service", ServerAddress: "${address}"${ifToken(`, HTTPHeaders: map[string]string{${bearer}}`)}})`,
      ],
      note: 'Put the second line at the start of main. It sends CPU time, memory and goroutines.',
    },
    {
      language: 'Python',
      steps: [
        'pip install pyroscope-io',
        `import pyroscope; pyroscope.configure(application_name="my-service", server_address="${address}"${ifToken(', auth_token="TOKEN"')})`,
      ],
      note: 'Put the second line at the start of your program.',
    },
    {
      language: 'Node.js',
      steps: [
        'npm install @pyroscope/nodejs',
        `const Pyroscope = require('@pyroscope/nodejs'); Pyroscope.init({ appName: 'my-service', serverAddress: '${address}'${ifToken(", authToken: 'TOKEN'")} }); Pyroscope.start();`,
      ],
      note: 'Put the second line at the start of your program.',
    },
    {
      language: 'Java',
      steps: [
        `PYROSCOPE_APPLICATION_NAME=my-service PYROSCOPE_SERVER_ADDRESS=${address}${ifToken(' PYROSCOPE_AUTH_TOKEN=TOKEN')} java -javaagent:pyroscope.jar -jar app.jar`,
      ],
      note: 'The agent is one file: pyroscope.jar of the releases of grafana/pyroscope-java.',
    },
    {
      language: 'Rust',
      steps: [
        'cargo add pyroscope --features backend-pprof-rs',
        `let _agent = pyroscope::pyroscope::PyroscopeAgentBuilder::new("${address}", "my-service", 100, "pyroscope-rs", "2", pyroscope::backend::pprof_backend(Default::default(), Default::default())).build()?.start()?;`,
      ],
      note: 'Put the second line at the start of main. OpenTelemetry’s profiler, beside this, needs no line.',
    },
    {
      language: 'OpenTelemetry',
      steps: [`sudo ebpf-profiler -collection-agent=${host}:${otlpGrpcPort} -disable-tls`],
      note: 'OpenTelemetry’s eBPF profiler samples every process of a machine, in Rust, C++ and most other languages, without a change to any. It must send OTLP profiles of version 1.10 or later.',
    },
    {
      language: 'curl',
      steps: [
        `printf 'main;work 70\\nmain;wait 30\\n' | curl --data-binary @-${ifToken(" -H 'authorization: Bearer TOKEN'")} "${address}/ingest?name=my-service.cpu&from=$(($(date +%s)-10))&until=$(date +%s)&sampleRate=100"`,
      ],
      note: 'Sends folded stacks: 70 and 30 samples of 10 ms, without any program.',
    },
  ];
}
