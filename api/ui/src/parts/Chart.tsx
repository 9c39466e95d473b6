/**
 * Trend draws a line without axes, which shows whether a value rises or falls. The line has gaps
 * where values are missing.
 */
export function Trend({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(...values)
  if (values.filter(v => v > 0).length < 2) return <span className="faint">—</span>
  const step = 96 / (values.length - 1)
  const points = values.map((v, i) =>
    v > 0 ? `${(2 + i * step).toFixed(1)},${(22 - (20 * v) / most).toFixed(1)}` : undefined,
  )
  const lines = points
    .map((p, i) => (p === undefined ? '' : `${points[i - 1] === undefined ? 'M' : 'L'}${p}`))
    .join('')
  return (
    <svg
      className="trend"
      width="100"
      height="24"
      viewBox="0 0 100 24"
      role="img"
      aria-label={label}
    >
      <path d={lines} />
      {points.map(
        (p, i) =>
          p !== undefined &&
          points[i - 1] === undefined &&
          points[i + 1] === undefined && (
            <circle key={i} cx={p.split(',')[0]} cy={p.split(',')[1]} r="1.5" />
          ),
      )}
    </svg>
  )
}
