import { useId, useMemo } from 'react';
import type { Profile } from '../../api/types.gen';
import type { DrawnFlame } from '../../logic/drawn-flame';
import { shareOfFrames } from '../../logic/flame-graph';
import { NOTHING_UNFOLDED } from '../../logic/foreign-runs';
import { counted, formatShare } from '../../logic/format';
import { flameOfProfile, nodeOfStack, stackOfNode } from '../../logic/profile-flame';
import type { ProfilesSearch } from '../../logic/profiles-search';
import { matcherOf } from '../../logic/search';
import { FindInput } from '../parts/find-input';
import parts from '../parts/parts.module.css';
import { FlameGraph } from '../recording/flame-graph';
import type { Change } from './filters';
import css from './profiles.module.css';

const NO_FRAMES: ReadonlySet<number> = new Set();
const nothing = (): void => undefined;

/** The box to find functions with, and how much they have. */
function FindBox({ find, flame, found, change }: { find: string; flame: DrawnFlame; found: ReadonlySet<number>; change: Change }) {
  const hint = useId();
  return (
    <search className={css.find}>
      <FindInput
        text={find}
        find={(text) => change({ find: text === '' ? undefined : text })}
        aria-label="Find functions"
        aria-describedby={hint}
        placeholder="Find functions   /"
      />
      <span id={hint} role="status">
        {find !== '' &&
          (found.size === 0 ? 'nothing found' : `${counted(found.size, 'function')}, ${formatShare(shareOfFrames(flame, found))} in total`)}
      </span>
    </search>
  );
}

/** The flame graph of the profiles. A click zooms; what is searched for and what is selected is highlighted. */
export function FlameSection({
  profile,
  title,
  search,
  change,
  step,
}: {
  readonly profile: Profile;
  readonly title: string;
  readonly search: ProfilesSearch;
  /** Changes the address without a step back. */
  readonly change: Change;
  /** The same with one. */
  readonly step: Change;
}) {
  const flame = useMemo(() => flameOfProfile(profile, title), [profile, title]);
  const { find = '' } = search;
  const found = useMemo(() => {
    if (find.trim() === '') return NO_FRAMES;
    const matches = matcherOf(find);
    return new Set(flame.frames.flatMap((frame, place) => (matches(frame.function) ? [place] : [])));
  }, [flame, find]);
  const zoomed = useMemo(() => (search.zoom === undefined ? 0 : nodeOfStack(flame, search.zoom)), [flame, search.zoom]);
  const handleOf = (name: string | undefined): string | null =>
    name === undefined ? null : (flame.frames.find((frame) => frame.function === name)?.handle ?? null);
  return (
    <section className={css.section} aria-label="Flame graph">
      <div className={css.bandHead}>
        <h2>Flame graph</h2>
        <FindBox find={find} flame={flame} found={found} change={change} />
        <p className={css.hint}>
          click zooms, <kbd className={parts.key}>Esc</kbd> goes back
        </p>
      </div>
      <div className={css.flame}>
        <FlameGraph
          flame={flame}
          click="zoom"
          found={found}
          // One colour marks both, so only one of them is marked.
          selectedHandle={find.trim() === '' ? handleOf(search.function) : null}
          zoomedNode={zoomed}
          unfolded={NOTHING_UNFOLDED}
          onSelect={(handle) => change({ function: flame.frames.find((frame) => frame.handle === handle)?.function })}
          onZoom={(node) => step({ zoom: stackOfNode(flame, node) ?? undefined })}
          onToggleRun={nothing}
          onFoldForeign={nothing}
        />
      </div>
    </section>
  );
}
