import { type Factor, listFactors } from '../../core/factors/factors.store.ts'
import { relyingPartyOf } from '../../core/factors/relying-party.ts'
import { creationOptions, requestOptions } from '../../core/factors/webauthn.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import type { StoredCredential } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import type { Open } from './challenge-parts.ts'

/** Options that a browser passes to its key: `create` until the factor is verified, then `request`. */
export interface KeyChallenge {
  type: 'create' | 'request'
  credential_options: { publicKey: object }
}

const CHALLENGE_BYTES = 32

/** Opens a challenge to a security key; `asked` is the relying party in the request. */
export async function challengeKey(
  deps: Deps,
  { user }: Pick<LiveCaller, 'user'>,
  factor: Factor,
  asked: unknown,
  open: Open,
): Promise<KeyChallenge> {
  const { mfa, siteUrl, redirectAllowList } = deps.config
  const party = relyingPartyOf(mfa.webauthn, { siteUrl, allowList: redirectAllowList }, asked)
  const challenge = deps.random(CHALLENGE_BYTES)
  const question = { rpId: party.rpId, challenge, timeoutSeconds: mfa.challengeSeconds }
  const stored = { ...party, challenge: challenge.toString('base64url') }
  if (factor.credential) {
    const publicKey = await requestOptions(question, factor.credential)
    await open({ webauthn: { ...stored, type: 'request' } })
    return { type: 'request', credential_options: { publicKey } }
  }
  const known = (await listFactors(deps.db, user.id)).flatMap(({ credential }): StoredCredential[] =>
    credential ? [credential] : [],
  )
  const displayName = mfa.webauthn.displayName ?? new URL(siteUrl).host
  const owner = { id: user.id, name: user.email || user.phone || user.id }
  const publicKey = await creationOptions({ ...question, displayName }, owner, known)
  await open({ webauthn: { ...stored, type: 'create' } })
  return { type: 'create', credential_options: { publicKey } }
}
