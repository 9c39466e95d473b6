/**
 * elsewhere returns the link to a task in another system: a pattern with {trace_id} and {task}
 * filled in. It returns undefined without a pattern, or if the task lacks the value.
 */
export function elsewhere(
  pattern: string | undefined,
  of: { task: string; trace_id?: string },
): string | undefined {
  if (!pattern || (pattern.includes('{trace_id}') && !of.trace_id)) return undefined
  const url = pattern
    .replaceAll('{trace_id}', encodeURIComponent(of.trace_id ?? ''))
    .replaceAll('{task}', encodeURIComponent(of.task))
  return /^https?:\/\//.test(url) ? url : undefined
}
