const remembered = 'troupe-answers-as'

/** By which name whoever uses this browser answers. */
export const answersAs = () => localStorage.getItem(remembered) ?? ''

export const setAnswersAs = (name: string) => localStorage.setItem(remembered, name)
