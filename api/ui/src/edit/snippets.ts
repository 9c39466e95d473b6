// Snippets of the palette: complete nodes to be adapted.

export const snippets = {
  service: 'work:\n  service: my-service\n  retry: {max_attempts: 4}\n  timeout: 30s\n',
  queue: 'job:\n  exec_type: queue\n  service: my-queue\n',
  each: 'each_item:\n  service: my-service\n  each: {items: $params.items}\n',
  local: 'call:\n  exec_type: local_func\n  func: my_function\n',
  approval: 'approve:\n  kind: approval\n  params: {approval_key: $shared.decision}\n',
  timer: 'pause:\n  kind: timer\n  params: {delay_ms: 5000}\n',
  signal: 'paid:\n  kind: wait_event\n  params: {signal_key: $shared.paid}\n',
}

/**
 * inserted returns where to insert a node into a YAML text, and the text to insert. The place is
 * behind the node of the given line, or behind the last node. A key that is taken gets a number.
 */
export function inserted(
  text: string,
  line: number,
  snippet: string,
): { at: number; insert: string; select: number } {
  const lines = text.split('\n')
  const begin = lines.findIndex(l => /^nodes:\s*(#.*)?$/.test(l))
  const head = begin < 0 ? `${text === '' || text.endsWith('\n') ? '' : '\n'}nodes:\n` : ''
  const over = begin < 0 ? lines.length : ends(lines, begin + 1, l => /^\S/.test(l))
  const indent = /^(\s+)\S/.exec(
    lines.slice(begin + 1, over).find(l => /^\s+[^\s#]/.test(l)) ?? '  x',
  )![1]
  const inNodes = line - 1 > begin && line - 1 < over
  let end = inNodes
    ? ends(lines, line, l => l.startsWith(indent) && /^\S/.test(l.slice(indent.length)))
    : over
  end = Math.min(end, over)
  while (begin >= 0 && end - 1 > begin && !lines[end - 1].trim()) end--
  const key = snippet.slice(0, snippet.indexOf(':'))
  const taken = (k: string) => lines.some(l => l.trimStart().startsWith(`${k}:`))
  let name = key
  for (let n = 2; taken(name); n++) name = `${key}_${n}`
  const body =
    (name + snippet.slice(key.length))
      .trimEnd()
      .split('\n')
      .map(l => indent + l)
      .join('\n') + '\n'
  const at =
    begin < 0 ? text.length : Math.min(text.length, lines.slice(0, end).join('\n').length + 1)
  const gap = begin >= 0 && at === text.length && !text.endsWith('\n') ? '\n' : ''
  return { at, insert: gap + head + body, select: at + (gap + head + indent).length }
}

/**
 * ends returns the first line, from the given one on, that belongs to another part; the number of
 * lines if there is none.
 */
function ends(lines: string[], from: number, other: (line: string) => boolean): number {
  const found = lines.findIndex((l, i) => i >= from && l.trim() !== '' && other(l))
  return found < 0 ? lines.length : found
}
