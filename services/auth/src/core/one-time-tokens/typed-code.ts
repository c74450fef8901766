/** Longer texts are no codes; NFKC would only make them longer. */
const MAX_TYPED = 64

/** Removes blanks, hyphens and invisible characters of a typed or pasted code. Full-width digits become plain ones. */
export const typedCode = (text: string): string =>
  text.length > MAX_TYPED ? text : text.normalize('NFKC').replaceAll(/[\s\p{Pd}\p{Cf}\u2212]/gu, '')
