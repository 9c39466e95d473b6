import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  startCompletion,
  type Completion,
  type CompletionContext,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { unifiedMergeView } from '@codemirror/merge'
import { Compartment, EditorState, Text, type Extension } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import type { DefinitionProblem } from '../api.gen'
import { offers, placeOf, type Schema } from './place'
import { wordEnd, within } from './spots'

export interface Told {
  changed: (text: string) => void
  line: (n: number) => void
  tried: () => void
}

/**
 * Editor edits a definition. It lives in a shadow root, because the page's content policy allows
 * the editor's styles there.
 */
export interface Editor {
  text: () => string
  set: (text: string) => void
  put: (at: number, insert: string, select: number) => void
  go: (line: number, column?: number, focus?: boolean) => void
  problems: (list: DefinitionProblem[]) => void
  know: (schema: Schema | undefined, nodes: string[]) => void
  beside: (published: string | undefined) => void
  close: () => void
}

export function openEditor(host: HTMLElement, label: string, text: string, told: Told): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const language = new Compartment(),
    merge = new Compartment()
  const known: { schema?: Schema; nodes: string[] } = { nodes: [] }
  let isJSON = looksLikeJSON(text)
  const heard = EditorView.updateListener.of(u => {
    if (u.docChanged) {
      const now = u.state.doc.toString()
      told.changed(now)
      if (looksLikeJSON(now) !== isJSON) {
        isJSON = !isJSON
        queueMicrotask(() => view.dispatch({ effects: language.reconfigure(languageOf(isJSON)) }))
      }
    }
    if (u.docChanged || u.selectionSet)
      told.line(u.state.doc.lineAt(u.state.selection.main.head).number)
  })
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        lintGutter(),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        highlightActiveLine(),
        indentOnInput(),
        indentUnit.of('  '),
        bracketMatching(),
        closeBrackets(),
        autocompletion({
          override: [context => completed(context, known)],
          icons: false,
          interactionDelay: 0,
        }),
        keymap.of([
          { key: 'Mod-Enter', run: () => (told.tried(), true) },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...lintKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
        EditorView.lineWrapping,
        language.of(languageOf(isJSON)),
        merge.of([]),
        look,
        syntaxHighlighting(colors),
        heard,
      ],
    }),
  })
  // Keys typed in the editor are not keys of the page, which sees only the host element.
  const keep = (e: Event) => e.stopPropagation()
  root.addEventListener('keydown', keep)
  return {
    text: () => view.state.doc.toString(),
    set: next => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    put: (at, insert, select) => {
      const size = /^[\w]+/.exec(insert.slice(select - at))?.[0].length ?? 0
      view.dispatch({
        changes: { from: at, insert },
        selection: { anchor: select, head: select + size },
        scrollIntoView: true,
        userEvent: 'input',
      })
      view.focus()
    },
    go: (line, column, focus) => {
      const found = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines))
      view.dispatch({
        selection: { anchor: found.from + within(found.text, column) },
        effects: EditorView.scrollIntoView(found.from, { y: 'center' }),
      })
      if (focus) view.focus()
    },
    problems: list =>
      view.dispatch(
        setDiagnostics(
          view.state,
          list.map(p => diagnostic(view.state.doc, p)),
        ),
      ),
    know: (schema, nodes) => void Object.assign(known, { schema, nodes }),
    beside: published => {
      // A comparison keeps the text that it began with, so it is removed before a new one is added.
      view.dispatch({ effects: merge.reconfigure([]) })
      if (published !== undefined)
        view.dispatch({
          effects: merge.reconfigure(
            unifiedMergeView({ original: published, mergeControls: false }),
          ),
        })
    },
    close: () => {
      root.removeEventListener('keydown', keep)
      view.destroy()
    },
  }
}

/** looksLikeJSON applies the same rule as the server. */
export function looksLikeJSON(text: string): boolean {
  return /^[\s\ufeff]*\{/.test(text)
}

function languageOf(isJSON: boolean): Extension {
  return isJSON ? json() : yaml()
}

function diagnostic(doc: Text, p: DefinitionProblem): Diagnostic {
  const line = doc.line(Math.min(Math.max(p.line ?? 1, 1), doc.lines))
  const from = within(line.text, p.column)
  return {
    from: line.from + from,
    to: line.from + Math.max(from, wordEnd(line.text, from)),
    severity: p.severity,
    message: p.message,
    source: p.path,
  }
}

function completed(context: CompletionContext, known: { schema?: Schema; nodes: string[] }) {
  const before = context.state.sliceDoc(0, context.pos)
  const place = placeOf(before)
  if (
    !known.schema ||
    !place ||
    (!context.explicit && place.word === '' && place.key === undefined)
  )
    return null
  const quoted = looksLikeJSON(before)
  const options = offers(known.schema, place, known.nodes).map((o): Completion => {
    const word = quoted ? JSON.stringify(o.label) : o.label
    const key = o.key && !/^\s*"?:/.test(context.state.sliceDoc(context.pos, context.pos + 40))
    return {
      label: word,
      displayLabel: o.label,
      info: o.info,
      type: o.key ? 'property' : 'enum',
      apply: key ? applied(`${word}: `, !o.block) : applied(word, false),
    }
  })
  return { from: context.pos - place.word.length, options, validFor: /^["\w.$-]*$/ }
}

/**
 * applied inserts a completion. It also replaces a closing quote behind the word, and opens the
 * next completions if a value must follow.
 */
function applied(insert: string, more: boolean) {
  return (view: EditorView, _: Completion, from: number, to: number) => {
    const closing = /^"/.test(insert) && view.state.sliceDoc(to, to + 1) === '"' ? 1 : 0
    view.dispatch({
      changes: { from, to: to + closing, insert },
      selection: { anchor: from + insert.length },
      userEvent: 'input.complete',
    })
    if (more) startCompletion(view)
  }
}

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.content], color: 'var(--text)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--paused)' },
  { tag: [tags.comment, tags.meta], color: 'var(--muted)', fontStyle: 'italic' },
  {
    tag: [tags.punctuation, tags.separator, tags.bracket, tags.squareBracket, tags.brace],
    color: 'var(--muted)',
  },
])

const look = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', color: 'var(--text)', backgroundColor: 'var(--panel)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': {
    fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace',
    lineHeight: '1.55',
  },
  '.cm-content': { caretColor: 'var(--text)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--muted)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--raised) 55%, transparent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground':
    { backgroundColor: 'var(--accent-ground)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'var(--accent-ground)',
    outline: '1px solid var(--accent)',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--panel)',
    color: 'var(--text)',
    border: '1px solid var(--strong-line)',
    borderRadius: '8px',
    boxShadow: 'var(--shadow)',
    maxWidth: '440px',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '2px 8px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--accent-ground)',
    color: 'var(--text)',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionInfo': { padding: '5px 9px' },
  '.cm-diagnostic': { padding: '4px 9px', fontFamily: 'system-ui, sans-serif' },
  '.cm-diagnostic-error': { borderLeft: '4px solid var(--failed)' },
  '.cm-diagnostic-warning': { borderLeft: '4px solid var(--waiting)' },
  '.cm-diagnosticSource': { opacity: '1', color: 'var(--muted)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--failed)',
  },
  '.cm-lintRange-warning': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--waiting)',
  },
  '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--completed-ground) !important' },
  '.cm-deletedChunk': { backgroundColor: 'var(--failed-ground) !important', color: 'var(--text)' },
  '.cm-changedText, .cm-deletedChunk .cm-deletedText, .cm-deletedText': {
    background: 'none !important',
    textDecoration: 'underline',
  },
  '.cm-panels': { backgroundColor: 'var(--panel)', color: 'var(--text)' },
})
