import { ApiError } from '@services/common/errors'
import type { FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import type pg from 'pg'
import type { Config } from '../config.ts'
import type { DB } from '../db/tables.ts'
import { countGuarded, type Guard, type MailShare } from '../limits/guards.ts'
import { consume, countAll, type GiveBack, keyOf, type Limiter, openLimiter } from '../limits/limiter.ts'
import { createPasswordTries, type PasswordTries } from '../limits/password-tries.ts'
import type { Rate } from '../limits/rate.ts'
import { mailboxOf } from '../users/email-address.ts'
import { limitKeyOf } from './client.ts'

/**
 * What a request is counted against; how counting works is said in limits/limiter.ts. Tries at passwords are counted their
 * own way, see limits/password-tries.ts.
 */
export interface Limits {
  /** Counts the request against its client address; nothing is limited without a trusted header. */
  byAddress(request: FastifyRequest, limit: AddressLimit): Promise<void>
  /** Counts a mail against a share of what may go to its mailbox, known or not, and the budget of all users. */
  mailSent(to: string, share: MailShare): Promise<GiveBack>
  /** The same for a mail to sign in or recover by, which a full mailbox does not refuse. */
  signInMailSent(to: string): Promise<{ isOverCap: boolean; giveBack: GiveBack }>
  /** Counts a stranger's wish that a change of address be sent again: each waits in the database until a worker has looked. */
  changeResent(): Promise<GiveBack>
  /**
   * Counts a sign-in begun at a provider, whoever begins it: each adds a row to the database, and to some providers a request
   * of ours.
   */
  signInBegun(begun: { asksProvider: boolean }): Promise<void>
  /** Counts a wish of a user for another address, whose answer tells whether somebody has it. */
  addressChange(userId: string): Promise<void>
  /** Counts a challenge to a second factor, or an answer to one, by session: one session takes nothing from another. */
  factorTry(factorId: string, sessionId: string): Promise<void>
  /** Counts a refusal at an admin door, by user or network; false beyond what the audit log takes of one of them. */
  isRefusalRecorded(who: string): Promise<boolean>
  /** Runs a try at an account's password, which tells whether it was right; refuses while misses cost a wait. */
  passwordTry: PasswordTries['run']
  /** Forgets the misses of a password that has been changed. */
  forgetPasswordTries: PasswordTries['forget']
}

export type AddressLimit =
  | 'signup'
  | 'anonymous'
  | 'token'
  | 'authorize'
  | 'verify'
  | 'user'
  | 'otp'
  | 'magiclink'
  | 'recover'
  | 'resend'
  | 'factors'

const FIVE_MINUTES = 300

/** Nobody changes address more often; whoever asks for strangers' learns little. */
const ADDRESS_CHANGES = { points: 10, seconds: 3600 }

/** Entries of refusals at admin doors that one user or network can cause: enough to be seen, too few to fill the log. */
const RECORDED_REFUSALS = { points: 10, seconds: 3600 }

/** Part of the sign-ins begun that may cause a request of ours each, which a provider counts against all our users. */
const PROVIDER_REQUESTS_SHARE = 0.1

export function createLimits(
  { pool, db, now }: { pool: pg.Pool; db: Kysely<DB>; now: () => Date },
  config: {
    limits: Config['limits']
    mfa: Pick<Config['mfa'], 'triesPerMinute'>
    mail: Pick<Config['mail'], 'maxPerAddress'>
    database: { namespace: string }
    server: { trustSbForwardedFor: boolean }
  },
): Limits {
  const { limits, mail } = config
  const factorTries: Rate = { points: config.mfa.triesPerMinute, seconds: 60 }
  const open = (name: string, rate: Rate) => openLimiter(pool, config.database.namespace, name, rate)
  const perAddress: Record<AddressLimit, Limiter> = {
    signup: open('signup', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    anonymous: open('anonymous', { points: limits.anonymousPerHour, seconds: 3600 }),
    token: open('token', { points: limits.tokenPer5Minutes, seconds: FIVE_MINUTES }),
    authorize: open('authorize', { points: limits.tokenPer5Minutes, seconds: FIVE_MINUTES }),
    verify: open('verify', { points: limits.verifyPer5Minutes, seconds: FIVE_MINUTES }),
    user: open('user', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    otp: open('otp', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    magiclink: open('magiclink', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    recover: open('recover', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    resend: open('resend', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    factors: open('factors', { ...factorTries, points: 2 * factorTries.points }),
  }
  const passwordTries = createPasswordTries({ db, now }, { freeMisses: limits.freeWrongPasswords })
  const changesResent = open('resend-changes', limits.mailsSent)
  const capsOf = (name: string, keyFor: Guard['keyFor']): Guard[] =>
    mail.maxPerAddress.map((rate) => ({ limiter: open(`${name}-${rate.seconds}`, rate), keyFor }))
  const perMailbox = capsOf('mail-address', (address) => keyOf(mailboxOf(address)))
  const perUser = capsOf('mail-user', (userId) => userId)
  const mails = open('mails', limits.mailsSent)
  const overBudget = 'over_email_send_rate_limit'
  const inBudget = () => consume(mails, 'all', overBudget)
  const inShare = (to: string, share: MailShare) => {
    if (share === 'admins') return []
    const count = () =>
      share === 'anybody' ? countGuarded(perMailbox, to, overBudget) : countGuarded(perUser, share.userId, overBudget)
    return [count]
  }
  const signInsBegun = open('provider-sign-ins', limits.providerSignIns)
  const providerRequests = open('provider-requests', {
    ...limits.providerSignIns,
    points: Math.ceil(limits.providerSignIns.points * PROVIDER_REQUESTS_SHARE),
  })
  const perFactor = open('factor', factorTries)
  const recordedRefusals = open('admin-refusals', RECORDED_REFUSALS)
  const addressChanges = open('address-change', ADDRESS_CHANGES)

  return {
    async byAddress(request, limit) {
      const address = limitKeyOf(request, config)
      if (address) await consume(perAddress[limit], keyOf(address), 'over_request_rate_limit')
    },
    mailSent: (to, share) => countAll([...inShare(to, share), inBudget]),
    async signInMailSent(to) {
      let isOverCap = false
      const giveBack = await countAll([
        () =>
          countGuarded(perMailbox, to, overBudget).catch((error: unknown) => {
            if (!(error instanceof ApiError)) throw error
            isOverCap = true
            return async () => {}
          }),
        inBudget,
      ])
      return { isOverCap, giveBack }
    },
    changeResent: () => consume(changesResent, 'all', 'over_request_rate_limit'),
    async signInBegun({ asksProvider }) {
      if (asksProvider) await consume(providerRequests, 'all', 'over_request_rate_limit')
      await consume(signInsBegun, 'all', 'over_request_rate_limit')
    },
    async isRefusalRecorded(who) {
      try {
        await consume(recordedRefusals, keyOf(who), 'over_request_rate_limit')
        return true
      } catch (error) {
        if (error instanceof ApiError) return false
        throw error
      }
    },
    async addressChange(userId) {
      await consume(addressChanges, userId, 'over_request_rate_limit')
    },
    async factorTry(factorId, sessionId) {
      await consume(perFactor, keyOf(`${factorId} ${sessionId}`), 'over_request_rate_limit')
    },
    passwordTry: passwordTries.run,
    forgetPasswordTries: passwordTries.forget,
  }
}
