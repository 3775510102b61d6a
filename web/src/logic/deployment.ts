/** Where the time of a deployment went (cloud, providers, Pulumi itself), in the words of the terminal. */
import type { Deployment } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

export interface DeploymentPart {
  readonly label: string;
  readonly explanation: string;
  readonly nanos: Nanos;
  readonly share: number;
}

/** The parts of a deployment, most asked-for first, without those that took no time. */
export function deploymentParts(deployment: Deployment, wallNanos: Nanos): readonly DeploymentPart[] {
  const part = (label: string, explanation: string, nanos: Nanos): DeploymentPart => ({
    label,
    explanation,
    nanos,
    share: ratio(nanos, wallNanos),
  });
  return [
    part('cloud', 'a provider waited for the cloud', deployment.cloudWaitNanos),
    part('providers', 'a provider ran its own code', deployment.providerNanos),
    part('Pulumi’s engine', 'Pulumi’s engine worked', deployment.engineNanos),
    part('language host', 'the language host and the program worked', deployment.languageHostNanos),
    part('plug-in start', 'Pulumi found, installed, started and configured plug-ins', deployment.pluginStartNanos),
    part('state', 'Pulumi read or wrote the state', deployment.stateBackendNanos),
    part('compiling', 'Pulumi compiled the program or fetched its dependencies', deployment.compileNanos),
    part('nothing running', 'no part of the deployment was running', deployment.idleNanos),
  ].filter(({ nanos }) => nanos > 0);
}
