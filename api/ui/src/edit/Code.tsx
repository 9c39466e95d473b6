import { useEffect, useRef } from 'react'
import { openEditor, type Editor, type Told } from './editor'

/**
 * Code shows the editor of a definition. The editor owns its text: the page receives events and
 * calls it through the ref `editor`.
 */
export function Code({
  label,
  start,
  told,
  editor,
}: {
  label: string
  start: string
  told: Told
  editor: React.RefObject<Editor | undefined>
}) {
  const host = useRef<HTMLDivElement>(null)
  const latest = useRef(told)
  latest.current = told
  useEffect(() => {
    const opened = openEditor(host.current!, label, start, {
      changed: t => latest.current.changed(t),
      line: n => latest.current.line(n),
      tried: () => latest.current.tried(),
    })
    editor.current = opened
    return () => {
      editor.current = undefined
      opened.close()
    }
  }, [label, start, editor])
  return <div ref={host} className="code" />
}
