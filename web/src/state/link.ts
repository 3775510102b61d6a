/** Links to what the page shows. */
import { api } from '../api/client';

/** The address of what the page shows now. That of `longpole open` needs its token in a browser that has not been here. */
export async function linkToHere(isServer: boolean): Promise<string> {
  const link = new URL(window.location.href);
  if (!isServer) link.searchParams.set('token', (await api.link(AbortSignal.timeout(5000))).token);
  return link.href;
}
