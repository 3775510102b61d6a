/** A trace of a server that a reader wants to keep. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '../api/client';

/** Ids of traces have 32 digits; recordings are called `r7`. */
export const isTrace = (name: string): boolean => /^[0-9a-f]{32}$/.test(name);

/** The name of a recording or the beginning of a trace's id, as people tell them apart. */
export const shortRecording = (name: string): string => (isTrace(name) ? `${name.slice(0, 8)}…` : name);

/** Has the server make a recording of it, and goes to the recording's page. */
export function useKeepTrace(trace: string) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => api.keepTrace(trace),
    onSuccess: ({ recording }) => {
      void client.invalidateQueries({ queryKey: ['recordings'] });
      return navigate({ to: '/r/$rec', params: { rec: recording } });
    },
  });
}
