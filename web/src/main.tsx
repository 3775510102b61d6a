import './style/tokens.css';
import './style/base.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { hideTokenInAddress } from './api/client';
import { startLanes, startPanelShare, startThemes } from './state/preferences';
import { createQueryClient } from './state/queries';
import { App } from './views/app';

hideTokenInAddress();
startThemes();
startPanelShare();
startLanes();

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={createQueryClient()}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
