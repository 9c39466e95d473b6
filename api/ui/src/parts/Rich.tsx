import { Fragment, type ReactNode } from 'react'

/**
 * Rich shows a text of the catalogue: `code` between backticks, and parts of the page in braces.
 */
export function Rich({ text, parts = {} }: { text: string; parts?: Record<string, ReactNode> }) {
  return text.split(/(`[^`]+`|\{[^}]+\})/).map((piece, i) => {
    if (piece.startsWith('`')) return <code key={i}>{piece.slice(1, -1)}</code>
    const name = /^\{([^}]+)\}$/.exec(piece)?.[1]
    return <Fragment key={i}>{name === undefined ? piece : (parts[name] ?? piece)}</Fragment>
  })
}
