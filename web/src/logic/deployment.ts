/** Is it the cloud, or Pulumi itself? Where the time of a deployment went, in the words of the terminal. */
import type { Deployment } from '../api/types';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

export interface DeploymentPart {
  readonly label: string;
  readonly explanation: string;
  readonly nanos: Nanos;
  readonly share: number;
}

/** The parts in the order in which people ask for them; those that took no time are left out. */
export function deploymentParts(deployment: Deployment, wallNanos: Nanos): readonly DeploymentPart[] {
  const part = (label: string, explanation: string, nanos: Nanos): DeploymentPart => ({
    label,
    explanation,
    nanos,
    share: ratio(nanos, wallNanos),
  });
  return [
    part('cloud', 'a provider waited for the cloud', deployment.cloudWaitNanos),
    part('providers', 'a provider ran code of its own', deployment.providerNanos),
    part('Pulumi’s engine', 'Pulumi’s engine was at work', deployment.engineNanos),
    part('language host', 'the language host and the program were at work', deployment.languageHostNanos),
    part('plug-in start', 'plug-ins were found, installed, started and configured', deployment.pluginStartNanos),
    part('state', 'the state was read or written', deployment.stateBackendNanos),
    part('compiling', 'the program was compiled, or what it needs was fetched', deployment.compileNanos),
    part('idle', 'nothing of the deployment was there', deployment.idleNanos),
  ].filter(({ nanos }) => nanos > 0);
}
