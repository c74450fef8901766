/** Operators get numbers in blocks of ten thousand or more; three digits would give a thief ten times the cap. */
const BLOCK_DIGITS = 4

/** Digits that the numbers of one block share. */
export const blockOf = (number: string): string => number.slice(0, -BLOCK_DIGITS)
