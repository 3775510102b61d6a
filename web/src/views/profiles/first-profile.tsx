import { firstProfiles } from '../../logic/first-profile';
import { SINCE_LONGEST, sinceInWords } from '../../logic/profiles-search';
import { useReceivers } from '../../state/queries';
import { StepsByLanguage } from '../parts/first-steps';
import list from '../parts/list.module.css';
import css from './profiles.module.css';

/** What to do before the first profile has arrived. */
export function FirstProfile() {
  const receivers = useReceivers();
  const { host, pyroscopePort, otlpGrpcPort, otlpHttpPort, needsToken } = receivers;
  return (
    <div className={`${list.empty} ${css.empty}`}>
      <div role="status">
        <h2>No profiles in the {sinceInWords(SINCE_LONGEST)}</h2>
        <p>Services send profiles continuously. From the first one on, this page shows which functions use CPU time and memory.</p>
      </div>
      <StepsByLanguage languages={firstProfiles(receivers)} legend="How a program sends its first profile" needsToken={needsToken} />
      <p>
        Every client of Pyroscope works unchanged; its server address is{' '}
        <code>
          http://{host}:{pyroscopePort}
        </code>
        . OpenTelemetry profiles go to port {otlpGrpcPort} (gRPC) and {otlpHttpPort} (HTTP).
      </p>
    </div>
  );
}
