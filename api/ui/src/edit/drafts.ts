// What somebody writes stays in the browser: the server keeps what was published as JSON, without its comments.

export interface Draft {
  text: string
  published: string // the text of the version that it began with; '' = there was none
  after: number // the number of that version
  input?: string // of tries
}

const name = (flow: string) => `troupe.draft.${flow}`

export function draftOf(flow: string): Draft | undefined {
  try {
    return JSON.parse(localStorage.getItem(name(flow)) ?? 'null') ?? undefined
  } catch {
    return undefined // nobody but the browser's user can have written it
  }
}

export function keepDraft(flow: string, draft: Draft | undefined) {
  try {
    if (draft) localStorage.setItem(name(flow), JSON.stringify(draft))
    else localStorage.removeItem(name(flow))
  } catch {
    // the browser has no room left: it stays in the page
  }
}
