import { hashToken, type RandomInt, randomBase62 } from './api-token.ts'

/** As hard to guess as a token (131 bits), and never taken for one. */
export function makeDeleteToken(random: RandomInt): { token: string; hash: Buffer } {
  const token = `md_${randomBase62(22, random)}`
  return { token, hash: hashToken(token) }
}
