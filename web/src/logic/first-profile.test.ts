import { describe, expect, it } from 'vitest';
import { firstProfiles } from './first-profile';

const RECEIVERS = { host: 'tools.lan', pyroscopePort: 4041, otlpGrpcPort: 4319 };

describe('the first profile', () => {
  it('goes to this server, in every language', () => {
    const all = firstProfiles({ ...RECEIVERS, needsToken: false });
    expect(all.map(({ language }) => language)).toEqual(['Go', 'Python', 'Node.js', 'Java', 'Rust', 'OpenTelemetry', 'curl']);
    for (const { language, steps } of all) {
      expect(steps.join('\n')).toContain(language === 'OpenTelemetry' ? 'tools.lan:4319' : 'http://tools.lan:4041');
      expect(steps.join('\n')).not.toContain('TOKEN');
    }
  });

  it('has a token where the server wants one, if the client can send it', () => {
    const withToken = firstProfiles({ ...RECEIVERS, needsToken: true }).filter(({ steps }) => steps.join('\n').includes('TOKEN'));
    expect(withToken.map(({ language }) => language)).toEqual(['Go', 'Python', 'Node.js', 'Java', 'curl']);
  });
});
