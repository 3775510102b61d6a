/** The file that a reader gave to the page, from the moment on at which it is sent until its recording is shown. */
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useCallback } from 'react';
import { api } from '../api/client';
import { createAtom } from './store';

export interface OpenedFile {
  readonly name: string;
  /** Why it is not shown; `null` while it is read. */
  readonly error: unknown;
}

export const openedFileAtom = createAtom<OpenedFile | null>(null);

/** Sends a file to the server, and goes to the page of what it is a recording of. */
export function useOpenFile(): (file: File) => Promise<void> {
  const navigate = useNavigate();
  const client = useQueryClient();
  return useCallback(
    async (file: File): Promise<void> => {
      openedFileAtom.set({ name: file.name, error: null });
      try {
        const { recording } = await api.openFile(file);
        openedFileAtom.set(null);
        void client.invalidateQueries({ queryKey: ['recordings'] });
        await navigate({ to: '/r/$rec', params: { rec: recording } });
      } catch (error) {
        openedFileAtom.set({ name: file.name, error });
      }
    },
    [navigate, client],
  );
}
