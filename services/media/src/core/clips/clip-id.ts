import { type RandomInt, randomBase62 } from '../tokens/token-format.ts'

/** 47 bits: too many to enumerate, short enough to read aloud. The original's six characters could be enumerated. */
const ID_LENGTH = 8

export const makeClipId = (random: RandomInt): string => randomBase62(ID_LENGTH, random)

export const isClipId = (text: string): boolean => /^[0-9A-Za-z]{8}$/.test(text)
