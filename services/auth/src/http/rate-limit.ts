import { ApiError } from '@services/common/errors'
import type { FastifyRequest } from 'fastify'
import { mailboxOf } from '../adapters/mail/email-address.ts'
import type { Config } from '../config.ts'
import type { Refusal } from '../core/audit/sign-in-attempt.ts'
import { countGuarded, type Guard, type MailShare, openBudget, ownerKey } from '../core/limits/guards.ts'
import {
  consume,
  countAll,
  type GiveBack,
  keyOf,
  type Limiter,
  type LimiterDeps,
  openLimiter,
} from '../core/limits/limiter.ts'
import { createPasswordAttempts, type PasswordAttempts } from '../core/limits/password-attempts.ts'
import type { Rate } from '../core/limits/rate.ts'
import { limitKeyOf } from './client.ts'

/**
 * What a request is counted against; how counting works is said in core/limits/limiter.ts. Tries at passwords are counted their
 * own way, see core/limits/password-attempts.ts.
 */
export interface Limits {
  /** Counts the request against its client address; nothing is limited without a trusted header. */
  byAddress(request: FastifyRequest, limit: AddressLimit): Promise<void>
  /** Counts a mail against a share of what may go to its mailbox, known or not, and the budget of all users. */
  mailSent(to: string, share: MailShare): Promise<GiveBack>
  /** The same for a mail to sign in or recover by, which a full mailbox does not refuse. */
  signInMailSent(to: string, share: MailShare): Promise<{ isOverCap: boolean; giveBack: GiveBack }>
  /** Counts a stranger's request to send a change of address again: each is a row until a worker has answered it. */
  changeResent(): Promise<GiveBack>
  /**
   * Counts a request of ours that begins a sign-in at a provider: by client address, and for all together, because the provider
   * counts all of them as ours.
   */
  providerAsked(request: FastifyRequest): Promise<void>
  /** Counts a refused sign-in that is to be stored; false: too many were, of this user or client or in all. */
  isRefusalStored(refusal: Refusal): Promise<boolean>
  /** Counts a user's request for another address, whose answer reveals whether that is taken. */
  addressChange(userId: string): Promise<void>
  /** Counts a challenge to a second factor, or an answer to one, by session: one session takes nothing from another. */
  factorTry(factorId: string, sessionId: string): Promise<void>
  /** Runs a try at an account's password, which tells whether it was right; refuses while misses cost a wait. */
  passwordTry: PasswordAttempts['run']
  /** Runs an attempt to sign in by a password; a right one notes the client address once the sign-in has succeeded. */
  signInTry: PasswordAttempts['runSignIn']
  /** Key of the client address where the account was signed in from there lately, and where an address is trusted at all. */
  knownClient: PasswordAttempts['knownClient']
  /** Notes a sign-in without a password from a client address. */
  noteSignIn: PasswordAttempts['noteSignIn']
  /** Forgets the misses of a password that has been changed. */
  forgetPasswordTries: PasswordAttempts['forget']
}

export type AddressLimit =
  | 'signup'
  | 'anonymous'
  | 'token'
  | 'authorize'
  | 'callback'
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

/** Refused sign-ins that leave a row, of known users together and of all other callers together: each 2 GB in 90 days. */
const REFUSALS_STORED = { points: 2_000, seconds: 3600 }

/** The same of one user or client by one method: enough to be seen, too few to use up what all of them have. */
const REFUSALS_STORED_OF_ONE = { points: 10, seconds: 3600 }

/** Requests that begin sign-ins at X, of all users and of one client address; X counts those of an application together. */
const PROVIDER_REQUESTS = { points: 2000, seconds: FIVE_MINUTES }
const PROVIDER_REQUESTS_PER_ADDRESS = { points: 20, seconds: FIVE_MINUTES }

export function createLimits(
  deps: LimiterDeps,
  config: {
    limits: Config['limits']
    mfa: Pick<Config['mfa'], 'triesPerMinute'>
    mail: Pick<Config['mail'], 'maxPerAddress'>
    server: { trustSbForwardedFor: boolean }
  },
): Limits {
  const { limits, mail } = config
  const factorTries: Rate = { points: config.mfa.triesPerMinute, seconds: 60 }
  const open = (name: string, rate: Rate) => openLimiter(deps, name, rate)
  const perAddress: Record<AddressLimit, Limiter> = {
    signup: open('signup', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    anonymous: open('anonymous', { points: limits.anonymousPerHour, seconds: 3600 }),
    token: open('token', { points: limits.tokenPer5Minutes, seconds: FIVE_MINUTES }),
    authorize: open('authorize', { points: limits.tokenPer5Minutes, seconds: FIVE_MINUTES }),
    callback: open('callback', { points: limits.tokenPer5Minutes, seconds: FIVE_MINUTES }),
    verify: open('verify', { points: limits.verifyPer5Minutes, seconds: FIVE_MINUTES }),
    user: open('user', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    otp: open('otp', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    magiclink: open('magiclink', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    recover: open('recover', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    resend: open('resend', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    factors: open('factors', { ...factorTries, points: 2 * factorTries.points }),
  }
  const passwordAttempts = createPasswordAttempts(deps, { freeAttempts: limits.freeWrongPasswords })
  const changesResent = open('resend-changes', limits.mailsSent)
  const capsOf = (name: string, keyFor: Guard['keyFor']): Guard[] =>
    mail.maxPerAddress.map((rate) => ({ limiter: open(`${name}-${rate.seconds}`, rate), keyFor }))
  const perMailbox = capsOf('mail-address', (address) => keyOf(mailboxOf(address)))
  const perOwner = capsOf('mail-user', (owner) => owner)
  const overBudget = 'over_email_send_rate_limit'
  const budget = openBudget(deps, 'mails', limits.mailsSent, overBudget)
  const inBudget = (to: string, share: MailShare) => budget(share, keyOf(mailboxOf(to)))
  const inShare = async (to: string, share: MailShare): Promise<GiveBack> => {
    if (share === 'admins') return async () => {}
    return share === 'anybody'
      ? countGuarded(perMailbox, to, overBudget)
      : countGuarded(perOwner, ownerKey(share), overBudget)
  }
  const providerRequests = open('provider-requests', PROVIDER_REQUESTS)
  const providerRequestsPerAddress = open('provider-requests-address', PROVIDER_REQUESTS_PER_ADDRESS)
  const perFactor = open('factor', factorTries)
  const refusalsStored = open('refused-sign-ins', REFUSALS_STORED)
  const refusalsStoredOfOne = open('refused-sign-ins-of-one', REFUSALS_STORED_OF_ONE)
  const addressChanges = open('address-change', ADDRESS_CHANGES)

  return {
    async byAddress(request, limit) {
      const address = limitKeyOf(request, config)
      if (address) await consume(perAddress[limit], keyOf(address), 'over_request_rate_limit')
    },
    mailSent: (to, share) => countAll([() => inShare(to, share), () => inBudget(to, share)]),
    async signInMailSent(to, share) {
      let isOverCap = false
      const giveBack = await countAll([
        () =>
          inShare(to, share).catch((error: unknown) => {
            if (!(error instanceof ApiError)) throw error
            isOverCap = true
            return async () => {}
          }),
        () => inBudget(to, share),
      ])
      return { isOverCap, giveBack }
    },
    changeResent: () => consume(changesResent, 'all', 'over_request_rate_limit'),
    async providerAsked(request) {
      const address = limitKeyOf(request, config)
      const perAddress = () => consume(providerRequestsPerAddress, keyOf(address ?? ''), 'over_request_rate_limit')
      const ofAll = () => consume(providerRequests, 'all', 'over_request_rate_limit')
      await countAll(address ? [perAddress, ofAll] : [ofAll])
    },
    async isRefusalStored({ method, userId, client }) {
      const caller = userId ?? client
      if (caller && isOver(await refusalsStoredOfOne.count(keyOf(`${method} ${caller}`)))) return false
      return !isOver(await refusalsStored.count(userId ? 'users' : 'all'))
    },
    async addressChange(userId) {
      await consume(addressChanges, userId, 'over_request_rate_limit')
    },
    async factorTry(factorId, sessionId) {
      await consume(perFactor, keyOf(`${factorId} ${sessionId}`), 'over_request_rate_limit')
    },
    passwordTry: passwordAttempts.run,
    signInTry: passwordAttempts.runSignIn,
    knownClient: passwordAttempts.knownClient,
    noteSignIn: passwordAttempts.noteSignIn,
    forgetPasswordTries: passwordAttempts.forget,
  }
}

const isOver = (counted: GiveBack | number) => typeof counted === 'number'
