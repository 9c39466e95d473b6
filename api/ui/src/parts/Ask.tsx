import { useEffect, useRef, type ReactNode } from 'react'

/**
 * Ask shows the browser's own modal dialog: Escape closes it, and the page behind it cannot be
 * reached.
 */
export function Ask({
  title,
  close,
  children,
}: {
  title: string
  close: () => void
  children: ReactNode
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={close}
      onClick={e => e.target === dialog.current && dialog.current?.close()}
    >
      <form method="dialog" className="dialog" onSubmit={e => e.preventDefault()}>
        <h2>{title}</h2>
        {children}
      </form>
    </dialog>
  )
}
