import { note } from '../data/acts'
import { Icon } from './Icon'
import { texts } from '../texts'

/**
 * copy copies a text. Browsers give pages a clipboard only over HTTPS or on this computer.
 * Elsewhere a selection can be copied.
 */
export async function copy(text: string) {
  const given = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  )
  if (!given && !copiedSelection(text)) note({ text: texts.copy.failed, bad: true })
}

function copiedSelection(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.value = text
  area.readOnly = true // otherwise a phone shows its keyboard
  area.setAttribute('aria-hidden', 'true')
  area.style.cssText = 'position: fixed; inset: 0 auto auto 0; opacity: 0'
  // elements outside an open dialog cannot be selected
  ;(focused?.closest('dialog') ?? document.body).append(area)
  try {
    area.select()
    return document.execCommand('copy')
  } catch {
    return false
  } finally {
    area.remove()
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
  }
}

export function Copy({
  text,
  label,
  title = label,
  size = 14,
}: {
  text: string | (() => string)
  label: string
  title?: string
  size?: number
}) {
  return (
    <button
      type="button"
      className="quiet"
      onClick={() => void copy(typeof text === 'string' ? text : text())}
      title={title}
      aria-label={label}
    >
      <Icon name="copy" size={size} />
    </button>
  )
}
