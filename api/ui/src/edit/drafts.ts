// Drafts stay in the browser, because the server keeps published definitions as JSON, without their
// comments.

export interface Draft {
  text: string
  published: string // text of the version that the draft began with; '' if there was none
  after: number // number of that version
  input?: string // params for a try
}

const name = (flow: string) => `troupe.draft.${flow}`

export function draftOf(flow: string): Draft | undefined {
  try {
    return JSON.parse(localStorage.getItem(name(flow)) ?? 'null') ?? undefined
  } catch {
    return undefined // only the browser's user can have written it
  }
}

export function keepDraft(flow: string, draft: Draft | undefined) {
  try {
    if (draft) localStorage.setItem(name(flow), JSON.stringify(draft))
    else localStorage.removeItem(name(flow))
  } catch {
    // the browser has no room left, so the draft stays only in the page
  }
}
