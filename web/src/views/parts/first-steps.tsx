import { useState } from 'react';
import type { FirstSteps } from '../../logic/first-steps';
import css from './first-steps.module.css';
import { Command } from './notice';
import parts from './parts.module.css';

/** The steps of the language that the reader chooses. */
export function StepsByLanguage({
  languages,
  legend,
  needsToken,
}: {
  /** The first is chosen until the reader chooses another one. */
  readonly languages: readonly FirstSteps[];
  /** What the choice is of, for screen readers. */
  readonly legend: string;
  readonly needsToken: boolean;
}) {
  const [language, setLanguage] = useState(languages[0]?.language);
  const chosen = languages.find((one) => one.language === language);
  return (
    <>
      <fieldset className={css.languages}>
        <legend className={parts.visuallyHidden}>{legend}</legend>
        {languages.map((one) => (
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
    </>
  );
}
