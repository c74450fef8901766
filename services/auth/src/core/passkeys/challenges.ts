// Passkeys: keys of an authenticator that sign a user in (contract/auth-external.md 8). A challenge is not stored
// before its answer. Its id, a UUIDv7, holds the time and a tag over the bound facts; the key of the service makes the
// rest. Ceremonies: ../webauthn/ceremony.ts; requests: flows/passkeys/.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import type { RandomBytes } from '../one-time-tokens/one-time-token.ts'
import { markUsed } from './used-challenges.store.ts'

/** Facts that an answer must share with its challenge: the kind, then the user and session of a registration. */
export type Bound = readonly [kind: 'registration' | 'authentication' | 'signup', ...facts: string[]]

interface ChallengeDeps {
  passkeyChallengeKey: KeyObject
  now: () => Date
  config: { passkeys: { challengeSeconds: number } }
}

/** Bytes of a UUIDv7: 6 of time, 5 that are random but for version and variant, and 5 of the tag. */
const TIME_BYTES = 6
const RANDOM_BYTES = 5
const HEAD_BYTES = TIME_BYTES + RANDOM_BYTES
const TAG_BYTES = 5

export interface NewChallenge {
  id: string
  challenge: Buffer
  expiresAt: Date
}

export function makeChallenge(deps: ChallengeDeps & { random: RandomBytes }, bound: Bound): NewChallenge {
  const issuedMs = deps.now().getTime()
  const bytes = Buffer.alloc(HEAD_BYTES + TAG_BYTES)
  bytes.writeUIntBE(issuedMs, 0, TIME_BYTES)
  deps.random(RANDOM_BYTES).copy(bytes, TIME_BYTES)
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  tagOf(deps.passkeyChallengeKey, bound, bytes).copy(bytes, HEAD_BYTES)
  return {
    id: toUuid(bytes),
    challenge: challengeOf(deps.passkeyChallengeKey, bytes),
    expiresAt: endOf(deps, issuedMs),
  }
}

/** Makes the answer to a request for options. */
export const toChallengeBody = <Options extends object>({ id, expiresAt }: NewChallenge, options: Options) => ({
  challenge_id: id,
  options,
  expires_at: Math.floor(expiresAt.getTime() / 1000),
})

/**
 * Uses a challenge up and returns its bytes; the answer has one attempt, right or wrong. Throws
 * webauthn_challenge_expired, and webauthn_challenge_not_found for one that is used, not ours or bound to other facts.
 */
export async function takeChallenge(
  deps: ChallengeDeps & { db: Kysely<DB> },
  bound: Bound,
  id: string,
): Promise<Buffer> {
  const bytes = UUID.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex') : undefined
  if (!bytes) throw apiError('webauthn_challenge_not_found')
  const tag = tagOf(deps.passkeyChallengeKey, bound, bytes)
  if (!timingSafeEqual(bytes.subarray(HEAD_BYTES), tag)) throw apiError('webauthn_challenge_not_found')
  const issuedMs = bytes.readUIntBE(0, TIME_BYTES)
  if (endOf(deps, issuedMs) <= deps.now()) throw apiError('webauthn_challenge_expired')
  if (!(await markUsed(deps.db, id, issuedMs))) throw apiError('webauthn_challenge_not_found')
  return challengeOf(deps.passkeyChallengeKey, bytes)
}

/** Id of the account that a challenge for a sign-up creates: the authenticator stores it before the account exists. */
export function userOfSignUp({ passkeyChallengeKey }: Pick<ChallengeDeps, 'passkeyChallengeKey'>, id: string): string {
  const bytes = createHmac('sha256', passkeyChallengeKey)
    .update(JSON.stringify(['user', id.toLowerCase()]))
    .digest()
  bytes.writeUInt8(0x40 | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  return toUuid(bytes.subarray(0, 16))
}

const toUuid = (bytes: Buffer) => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

const endOf = ({ config }: ChallengeDeps, issuedMs: number) =>
  new Date(issuedMs + config.passkeys.challengeSeconds * 1000)

const tagOf = (key: KeyObject, bound: Bound, bytes: Buffer) =>
  createHmac('sha256', key)
    .update(JSON.stringify(['tag', ...bound]))
    .update(bytes.subarray(0, HEAD_BYTES))
    .digest()
    .subarray(0, TAG_BYTES)

const challengeOf = (key: KeyObject, bytes: Buffer) =>
  createHmac('sha256', key)
    .update(JSON.stringify(['challenge']))
    .update(bytes)
    .digest()
