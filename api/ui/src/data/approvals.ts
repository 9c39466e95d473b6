const remembered = 'troupe-answers-as'

/** answersAs returns the name that the user of this browser answers with. */
export const answersAs = () => localStorage.getItem(remembered) ?? ''

export const setAnswersAs = (name: string) => localStorage.setItem(remembered, name)
