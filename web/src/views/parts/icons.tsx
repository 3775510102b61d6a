import type { ReactNode } from 'react';

function Icon({ children }: { readonly children: ReactNode }) {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {children}
    </svg>
  );
}

/** The three poles of the name: the long one is the one that matters. */
export function Mark() {
  return (
    <svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <rect x="1" y="2" width="6" height="3" rx="1" fill="var(--neutral)" />
      <rect x="1" y="6.5" width="14" height="3" rx="1" fill="var(--path)" />
      <rect x="1" y="11" width="9" height="3" rx="1" fill="var(--neutral)" />
    </svg>
  );
}

export const SunIcon = () => (
  <Icon>
    <circle cx="8" cy="8" r="3" />
    <path d="M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9" />
  </Icon>
);
export const MoonIcon = () => (
  <Icon>
    <path d="M13.3 9.6A5.6 5.6 0 0 1 6.4 2.7a5.6 5.6 0 1 0 6.9 6.9Z" />
  </Icon>
);
export const ScreenIcon = () => (
  <Icon>
    <rect x="2" y="2.8" width="12" height="8" rx="1.2" />
    <path d="M5.5 13.4h5" />
  </Icon>
);
export const CloseIcon = () => (
  <Icon>
    <path d="m4 4 8 8M12 4l-8 8" />
  </Icon>
);
export const ZoomInIcon = () => (
  <Icon>
    <circle cx="7" cy="7" r="4.5" />
    <path d="m10.4 10.4 3.4 3.4M5 7h4M7 5v4" />
  </Icon>
);
export const ZoomOutIcon = () => (
  <Icon>
    <circle cx="7" cy="7" r="4.5" />
    <path d="m10.4 10.4 3.4 3.4M5 7h4" />
  </Icon>
);
export const FitIcon = () => (
  <Icon>
    <path d="M2 3v10M14 3v10M4.5 8h7M6.5 5.8 4.3 8l2.2 2.2M9.5 5.8 11.7 8l-2.2 2.2" />
  </Icon>
);
export const FoldIcon = () => (
  <Icon>
    <path d="M8 1.8v3.4M5.8 3.4 8 5.6l2.2-2.2M8 14.2v-3.4M5.8 12.6 8 10.4l2.2 2.2M2.5 8h11" />
  </Icon>
);
export const UnfoldIcon = () => (
  <Icon>
    <path d="M8 6V2M5.8 4 8 1.8 10.2 4M8 10v4M5.8 12 8 14.2l2.2-2.2M2.5 8h11" />
  </Icon>
);
export const WarnIcon = () => (
  <Icon>
    <path d="M8 2.2 14.3 13H1.7L8 2.2ZM8 6.4v3.1M8 11.3v.1" />
  </Icon>
);
export const CheckIcon = () => (
  <Icon>
    <path d="m3 8.5 3.2 3.2L13 4.8" />
  </Icon>
);
export const CopyIcon = () => (
  <Icon>
    <rect x="5.5" y="5.5" width="8" height="8" rx="1.2" />
    <path d="M10.5 3.2V3A1 1 0 0 0 9.5 2H3.2A1.2 1.2 0 0 0 2 3.2v6.3a1 1 0 0 0 1 1h.2" />
  </Icon>
);
export const BackIcon = () => (
  <Icon>
    <path d="M9.8 3.5 5.3 8l4.5 4.5" />
  </Icon>
);
export const NextIcon = () => (
  <Icon>
    <path d="M6.2 3.5 10.7 8l-4.5 4.5" />
  </Icon>
);
