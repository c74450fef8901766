const LISTS = {
  and: new Intl.ListFormat('en-GB', { type: 'conjunction' }),
  or: new Intl.ListFormat('en-GB', { type: 'disjunction' }),
}

/** `gif, mp4 or webm`. */
export const inWords = (words: readonly string[], last: 'and' | 'or'): string => LISTS[last].format(words)
