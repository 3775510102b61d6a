import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { firstProfiles } from '../../logic/first-profile';
import { SINCE_LONGEST, sinceInWords } from '../../logic/profiles-search';
import { serverQuery } from '../../state/queries';
import list from '../parts/list.module.css';
import { Command } from '../parts/notice';
import parts from '../parts/parts.module.css';
import css from './profiles.module.css';

/** What to do before the first profile has arrived. */
export function FirstProfile() {
  const host = window.location.hostname;
  const server = useQuery(serverQuery()).data;
  const needsToken = server?.needsToken ?? false;
  const pyroscopePort = server?.pyroscopePort ?? 4040;
  const all = firstProfiles({ host, pyroscopePort, otlpGrpcPort: server?.otlpGrpcPort ?? 4317, needsToken });
  const [language, setLanguage] = useState('Go');
  const chosen = all.find((one) => one.language === language);
  return (
    <div className={`${list.empty} ${css.empty}`}>
      <div role="status">
        <h2>No profiles in the {sinceInWords(SINCE_LONGEST)}</h2>
        <p>Services send them all the time, and this page says which function uses CPU and memory. It shows them as soon as they arrive.</p>
      </div>
      <fieldset className={css.languages}>
        <legend className={parts.visuallyHidden}>How a program sends its first profile</legend>
        {all.map((one) => (
          <label key={one.language}>
            <input type="radio" name="language" checked={one.language === language} onChange={() => setLanguage(one.language)} />
            {one.language}
          </label>
        ))}
      </fieldset>
      <ol className={css.steps}>
        {chosen?.steps.map((step) => (
          <li key={step}>
            <Command text={step} />
          </li>
        ))}
      </ol>
      <p>{chosen?.note}</p>
      {needsToken && <p>Replace TOKEN with a token from the server’s token file that allows sending.</p>}
      <p>
        Every client of Pyroscope works unchanged; its server address is{' '}
        <code>
          http://{host}:{pyroscopePort}
        </code>
        . OpenTelemetry profiles go to port {server?.otlpGrpcPort ?? 4317} (gRPC) and {server?.otlpHttpPort ?? 4318} (HTTP).
      </p>
    </div>
  );
}
