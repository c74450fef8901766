import { type Static, Type } from 'typebox'
import { parseChannel } from '../../adapters/sms/parse-channel.ts'
import { smsText } from '../../adapters/sms/sms-text.ts'
import { testCodeOf } from '../../adapters/test-codes.ts'
import { audit } from '../../core/audit/audit.ts'
import { insertChallenge, type NewChallenge } from '../../core/factors/challenges.store.ts'
import { changeFactor, type Factor, listFactors } from '../../core/factors/factors.store.ts'
import { relyingPartyOf } from '../../core/factors/relying-party.ts'
import { randomDigits } from '../../core/one-time-tokens/one-time-token.ts'
import { FACTOR_CODE_KIND, queueMessage, type SmsVariables } from '../../core/outbox/outbox.ts'
import { type LiveCaller, withLockedCaller } from '../../core/sessions/caller.ts'
import { withMessagesCounted } from '../../core/verification-messages/message-budget.ts'
import { withinGaps } from '../../core/verification-messages/send-gap.ts'
import { creationOptions, requestOptions } from '../../core/webauthn/ceremony.ts'
import type { Deps } from '../../deps.ts'
import { hashPhoneCode } from './proof.ts'
import { type FactorRequest, requireEnabled, requireFactor, requireMayProve } from './require-factor.ts'

export interface ChallengeOrder {
  factorId: string
  /** Delivery of a code to a phone; SMS by default. */
  channel: string | undefined
  webauthn: unknown
  ip: string | null
}

export const OpenChallenge = Type.Object({
  id: Type.String({ format: 'uuid' }),
  type: Type.String(),
  expires_at: Type.Integer({ description: 'Unix seconds.' }),
  webauthn: Type.Optional(
    Type.Object({
      type: Type.String({ description: '`create`, or `request` once the factor is verified.' }),
      credential_options: Type.Object({ publicKey: Type.Object({}, { additionalProperties: true }) }),
    }),
  ),
})

/** Stores the challenge with the parts of its kind of factor, and queues the message in the same transaction. */
type Open = (
  parts?: Pick<NewChallenge, 'code_hash' | 'webauthn'>,
  message?: Parameters<typeof queueMessage>[2],
) => Promise<void>

/** Opens a challenge to a factor (contract/auth-external.md 4.3). */
export async function challengeFactor(
  deps: Deps,
  { log, caller }: FactorRequest,
  order: ChallengeOrder,
): Promise<Static<typeof OpenChallenge>> {
  const factor = await requireFactor(deps.db, caller.user, order.factorId)
  const { factor_type: type } = factor
  requireEnabled(deps.config.mfa, type, 'verify')
  requireMayProve(deps, caller.user, caller.session, factor)
  await deps.limits.countFactorAttempt(factor.id, caller.session.id)
  const id = deps.newId()
  const expiresAt = new Date(deps.now().getTime() + deps.config.mfa.challengeSeconds * 1000)
  const open: Open = (parts, message) =>
    withLockedCaller(deps, caller, async (trx, { user, session }) => {
      const current = await requireFactor(trx, user, factor.id)
      requireMayProve(deps, user, session, current)
      const now = deps.now()
      const times = { expires_at: expiresAt, created_at: now }
      const challenge = { id, factor_id: factor.id, session_id: session.id, ip: order.ip, ...times }
      await insertChallenge(trx, { code_hash: null, ...challenge, ...parts })
      await changeFactor(trx, current, { last_challenged_at: now }, now)
      const traits = { factor_id: factor.id, factor_type: type, challenge_id: id }
      await audit(deps, trx, log, { action: 'challenge_created', actor: user, traits })
      if (message) await queueMessage(deps, trx, message)
    })
  const opened = { id, type, expires_at: Math.floor(expiresAt.getTime() / 1000) }
  if (type === 'webauthn')
    return { ...opened, webauthn: await challengeKey(deps, caller, factor, order.webauthn, open) }
  if (type === 'phone') await sendPhoneCode(deps, caller, factor, { ...order, challengeId: id }, open)
  else await open()
  return opened
}

/**
 * Sends a code to the factor's number. The gap between codes is per user and number. Users of one number do not delay
 * each other, and enrolling the factor again does not reset it. Messages to a proven number count in its user's share.
 */
async function sendPhoneCode(
  deps: Deps,
  { user }: LiveCaller,
  factor: Factor,
  { channel, challengeId }: { channel: string | undefined; challengeId: string },
  open: Open,
) {
  const { sms, mfa } = deps.config
  const to = factor.phone ?? ''
  const smsChannel = parseChannel(sms, channel)
  const testCode = testCodeOf(sms.testNumbers, to, deps.now())
  const code = testCode ?? randomDigits(deps.random, mfa.phone.codeLength)
  const code_hash = hashPhoneCode(deps.codeKey, challengeId, code)
  const data = sms.byHook ? user.user_metadata : undefined
  const variables: SmsVariables = { code, channel: smsChannel, text: smsText(mfa.phone.template, code), data }
  const kind = FACTOR_CODE_KIND
  const message = { channel: 'sms', kind, userId: user.id, to, variables, lifetimeSeconds: null } as const
  // A number that is not proven may be a stranger's.
  const share = factor.status === 'verified' ? { userId: user.id } : 'strangers'
  await withinGaps(deps, [{ kind: 'second_factor', key: `${user.id} ${to}` }], () =>
    withMessagesCounted(deps, [{ channel: 'phone', value: to, share }], () =>
      open({ code_hash }, testCode ? undefined : message),
    ),
  )
}

const CHALLENGE_BYTES = 32

/** Opens a challenge to a security key; `input` is the relying party in the request. */
async function challengeKey(deps: Deps, { user }: LiveCaller, factor: Factor, input: unknown, open: Open) {
  const { mfa, siteUrl, redirectAllowList } = deps.config
  const party = relyingPartyOf(mfa.webauthn, { siteUrl, allowList: redirectAllowList }, input)
  const challenge = deps.random(CHALLENGE_BYTES)
  const question = { rpId: party.rpId, challenge, timeoutSeconds: mfa.challengeSeconds }
  const stored = { ...party, challenge: challenge.toString('base64url') }
  if (factor.credential) {
    const publicKey = await requestOptions(question, factor.credential)
    await open({ webauthn: { ...stored, type: 'request' } })
    return { type: 'request', credential_options: { publicKey } }
  }
  const known = (await listFactors(deps.db, user.id)).flatMap(({ credential }) => credential ?? [])
  const rpName = mfa.webauthn.displayName ?? new URL(siteUrl).host
  const name = user.email || user.phone || user.id
  // Not the user's id: authenticators that always make discoverable keys would replace the user's passkey.
  const owner = { id: factor.id, name, displayName: name }
  const publicKey = await creationOptions({ ...question, rpName, residentKey: 'discouraged' }, owner, known)
  await open({ webauthn: { ...stored, type: 'create' } })
  return { type: 'create', credential_options: { publicKey } }
}
