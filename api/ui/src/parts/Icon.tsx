// The icons, drawn on a grid of 16 with lines of one width.
const paths: Record<string, string> = {
  overview: 'M2.5 8.5 8 3l5.5 5.5M4 7.5V13h8V7.5',
  flows: 'M3.5 2.5h3v3h-3zM9.5 10.5h3v3h-3zM5 5.5v3.5a2 2 0 0 0 2 2h2.5',
  tasks: 'M2.5 4h1M2.5 8h1M2.5 12h1M6 4h7.5M6 8h7.5M6 12h7.5',
  approval:
    'M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M3 13.5c.5-2.5 2.5-3.5 5-3.5 1 0 1.8.2 2.5.5M10.5 12.5l1.5 1.5 2.5-3',
  workers: 'M3 3h10v4H3zM3 9h10v4H3zM5 5h.01M5 11h.01',
  schedules: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M8 4.5V8l2.5 1.5',
  cluster:
    'M8 2.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3M3.5 10.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3M12.5 10.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3M7.2 5.5 4.3 10.5M8.8 5.5l2.9 5M5 12h6',
  settings: 'M2.5 5h6M11.5 5h2M2.5 11h2M7.5 11h6M10 3.5v3M6 9.5v3',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10M10.5 10.5 14 14',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M8 4.5V8l2.5 1.5',
  signal:
    'M8 9.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M5 11a4.2 4.2 0 0 1 0-6M11 5a4.2 4.2 0 0 1 0 6M3 13a7 7 0 0 1 0-10M13 3a7 7 0 0 1 0 10',
  choice: 'M8 2.5 13.5 8 8 13.5 2.5 8z',
  subflow: 'M2.5 2.5h11v11h-11zM5.5 5.5h5v5h-5z',
  fanout: 'M5.5 2.5h8v8M3 5h8v8H3z',
  work: 'M9 2 4 9h4l-1 5 5-7H8z',
  check: 'M3.5 8.5 6.5 11.5 12.5 5',
  cross: 'M4.5 4.5l7 7M11.5 4.5l-7 7',
  pause: 'M6 4v8M10 4v8',
  play: 'M5 3.5v9l7-4.5z',
  stop: 'M4 4h8v8H4z',
  retry: 'M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5',
  slash: 'M4 12 12 4',
  skip: 'M4 4l4 4-4 4M9 4l4 4-4 4',
  dots: 'M4 8h.01M8 8h.01M12 8h.01',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7',
  moon: 'M13.5 9.5A5.8 5.8 0 0 1 6.5 2.5a5.8 5.8 0 1 0 7 7z',
  fit: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  open: 'M6 4l4 4-4 4',
  down: 'M4 6l4 4 4-4',
  back: 'M10 4 6 8l4 4',
  alert: 'M8 2.5 14 13.5H2zM8 6.5v3M8 11.5h.01',
  link: 'M6.5 9.5a2.5 2.5 0 0 0 3.5 0l2.5-2.5A2.5 2.5 0 0 0 9 3.5l-1 1M9.5 6.5a2.5 2.5 0 0 0-3.5 0L3.5 9A2.5 2.5 0 0 0 7 12.5l1-1',
  edit: 'M3 13l.7-3L11 2.7l2.3 2.3L6 12.3zM9.5 4.2l2.3 2.3',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
}

export function Icon({ name, size = 16 }: { name: string; size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name] ?? paths.dots} />
    </svg>
  )
}
