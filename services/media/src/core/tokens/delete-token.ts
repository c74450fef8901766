import { hashToken, type RandomInt, randomBase62 } from './api-token.ts'

/** 131 bits like an API token, with a prefix of its own. */
export function makeDeleteToken(random: RandomInt): { token: string; hash: Buffer } {
  const token = `md_${randomBase62(22, random)}`
  return { token, hash: hashToken(token) }
}
