/** How a program of each language sends its first span: what to install, and how to start it. */
import type { FirstSteps } from './first-steps';

/** The steps for a server at this host, which takes OTLP over HTTP at this port. */
export function firstSpans(host: string, port: number, needsToken: boolean): readonly FirstSteps[] {
  const token = needsToken ? " OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20TOKEN'" : '';
  const variables = `OTEL_EXPORTER_OTLP_ENDPOINT=http://${host}:${port}${token} OTEL_SERVICE_NAME=my-service`;
  const span =
    '{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"hello","kind":2,' +
    '"startTimeUnixNano":"\'$(date +%s)\'000000000","endTimeUnixNano":"\'$(date +%s)\'500000000"}';
  const resource = '{"attributes":[{"key":"service.name","value":{"stringValue":"my-service"}}]}';
  return [
    {
      language: 'any SDK',
      steps: [variables],
      note: 'Set these variables for a program that has OpenTelemetry’s SDK already: it needs no other change.',
    },
    {
      language: 'Python',
      steps: [
        'pip install opentelemetry-distro opentelemetry-exporter-otlp && opentelemetry-bootstrap -a install',
        `${variables} opentelemetry-instrument python app.py`,
      ],
      note: 'The second command starts your program.',
    },
    {
      language: 'Node.js',
      steps: [
        'npm install @opentelemetry/api @opentelemetry/auto-instrumentations-node',
        `${variables} node --require @opentelemetry/auto-instrumentations-node/register app.js`,
      ],
      note: 'The second command starts your program.',
    },
    {
      language: 'Java',
      steps: [`${variables} java -javaagent:opentelemetry-javaagent.jar -jar app.jar`],
      note: 'The agent is one file: opentelemetry-javaagent.jar of OpenTelemetry’s releases for Java.',
    },
    {
      language: 'Go',
      steps: [
        'go get go.opentelemetry.io/otel/sdk go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp',
        'exporter, _ := otlptracehttp.New(ctx); otel.SetTracerProvider(trace.NewTracerProvider(trace.WithBatcher(exporter)))',
        `${variables} ./app`,
      ],
      note: 'Put the second line at the start of main.',
    },
    {
      language: 'Rust',
      steps: ['let _tracing = longpole_sdk::init();', `${variables} cargo run`],
      note: 'Put the first line at the start of main: it sends the spans of the crate tracing. OpenTelemetry’s own SDK works as well.',
    },
    {
      language: 'curl',
      steps: [
        `curl http://${host}:${port}/v1/traces${needsToken ? " -H 'authorization: Bearer TOKEN'" : ''} -H 'content-type: application/json' -d '{"resourceSpans":[{"resource":${resource},"scopeSpans":[{"spans":[${span}]}]}]}'`,
      ],
      note: 'Sends one span without any program.',
    },
  ];
}
