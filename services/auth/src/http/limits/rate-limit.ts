// Limits of requests, opened by name and rate. A request counts before its work, and a later refusal
// gives its points back. Mails: core/limits/mail-guards.ts; counting: core/limits/limiter.ts; tests:
// test/limits.test.ts.
import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import type { Refusal } from '../../core/audit/sign-in-attempt.ts'
import {
  consume,
  countAll,
  keyOf,
  type Limiter,
  type LimiterDeps,
  type LimitSetting,
  openLimiter,
  type Refund,
} from '../../core/limits/limiter.ts'
import { createMailGuards } from '../../core/limits/mail-guards.ts'
import type { Rate } from '../../core/limits/rate.ts'
import { countLimitHit } from '../../metrics.ts'
import { limitKeyOf } from './client.ts'

const FIVE_MINUTES = 300

/** More than any user needs, and too few to learn much about strangers' addresses. */
const ADDRESS_CHANGES = { points: 10, seconds: 3600 }

/** Stored refusals of known users together, and of all other callers together: each 2 GB in 90 days. */
const REFUSALS_STORED = { points: 2_000, seconds: 3600 }

/** Stored refusals of one user or client by one method: enough to be noticed, too few to exhaust the total. */
const REFUSALS_STORED_OF_ONE = { points: 10, seconds: 3600 }

/** Requests that begin sign-ins at X, in total and per client address; X counts those of an application together. */
const PROVIDER_REQUESTS = { points: 2000, seconds: FIVE_MINUTES }
const PROVIDER_REQUESTS_PER_ADDRESS = { points: 20, seconds: FIVE_MINUTES }

/** Wrong guesses at the fixed code of a test address: half of a million possible ones take seventeen years. */
const FIXED_CODE_GUESSES = { points: 20, seconds: 6 * 3600 }

/** Codes of devices that are waiting are few among 26 billion: a guess at these rates finds none. */
const WRONG_DEVICE_CODES = { points: 5, seconds: 60 }

/** Devices that a user trusts: each may send a mail. */
const DEVICES_TRUSTED = { points: 10, seconds: 3600 }

/** Samples of mails that an admin sends to the own address. */
const SAMPLES_SENT = { points: 20, seconds: 3600 }

/** Exports of one user's data, enough to repeat a broken download. Each reads up to 10,000 entries of the audit log. */
const EXPORTS = { points: 5, seconds: 3600 }

const OF_FACTORS = 'AUTH_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY'

export type AddressLimit = keyof ReturnType<typeof addressRatesOf>

/** Rates of one client address. Each name has a counter of its own; names that share `otp` share only the rate. */
function addressRatesOf(limits: Config['limits'], factorAttempts: Rate) {
  const ofSetting = (setting: LimitSetting, points: number, seconds = FIVE_MINUTES) => ({ setting, points, seconds })
  const token = ofSetting('AUTH_RATE_LIMIT_TOKEN_REFRESH', limits.tokenPer5Minutes)
  const passkey = ofSetting('AUTH_RATE_LIMIT_PASSKEY', limits.passkeyPer5Minutes)
  const otp = ofSetting('AUTH_RATE_LIMIT_OTP', limits.otpPer5Minutes)
  // The reference counts in a bucket of three times its rate, which is empty for as long.
  const registration = ofSetting(
    'AUTH_RATE_LIMIT_O_AUTH_DYNAMIC_CLIENT_REGISTER',
    3 * limits.registrationsPer5Minutes,
    3 * FIVE_MINUTES,
  )
  return {
    ...{ token, authorize: token, callback: token, oauthAuthorize: token, oauthPar: token, oauthToken: token },
    ...{ signup: otp, user: otp, otp, magiclink: otp, recover: otp, resend: otp },
    anonymous: ofSetting('AUTH_RATE_LIMIT_ANONYMOUS_USERS', limits.anonymousPerHour, 3600),
    verify: ofSetting('AUTH_RATE_LIMIT_VERIFY', limits.verifyPer5Minutes),
    registration,
    web3: ofSetting('AUTH_RATE_LIMIT_WEB3', limits.web3Per5Minutes),
    ...{ passkeyOptions: passkey, passkeySignIn: passkey, passkeyRegistration: passkey },
    factors: ofSetting(OF_FACTORS, 2 * factorAttempts.points, factorAttempts.seconds),
    devices: ofSetting(OF_FACTORS, 2 * factorAttempts.points, factorAttempts.seconds),
  }
}

export type Limits = ReturnType<typeof createLimits>

export function createLimits(deps: LimiterDeps, config: Pick<Config, 'limits' | 'mail' | 'mfa' | 'server'>) {
  const factorAttempts: Rate = { points: config.mfa.attemptsPerMinute, seconds: 60 }
  const open = (name: string, rate: Rate, setting: LimitSetting | null) => openLimiter(deps, { name, setting }, rate)
  const openFixed = (name: string, rate: Rate) => open(name, rate, null)
  const addressRates = addressRatesOf(config.limits, factorAttempts)
  const perAddress = Object.fromEntries(
    Object.entries(addressRates).map(([name, rate]) => [name, open(name, rate, rate.setting)]),
  ) as Record<AddressLimit, Limiter>
  const providerRequests = openFixed('provider-requests', PROVIDER_REQUESTS)
  const providerRequestsPerAddress = openFixed('provider-requests-address', PROVIDER_REQUESTS_PER_ADDRESS)
  const perFactor = open('factor', factorAttempts, OF_FACTORS)
  const refusalsStored = openFixed('refused-sign-ins', REFUSALS_STORED)
  const refusalsStoredOfOne = openFixed('refused-sign-ins-of-one', REFUSALS_STORED_OF_ONE)
  const fixedCodeGuesses = openFixed('fixed-code', FIXED_CODE_GUESSES)
  const wrongDeviceCodes = openFixed('device-codes', WRONG_DEVICE_CODES)
  const addressChanges = openFixed('address-change', ADDRESS_CHANGES)
  const devicesTrusted = openFixed('devices-trusted', DEVICES_TRUSTED)
  const samplesSent = openFixed('samples-sent', SAMPLES_SENT)
  const exports = openFixed('user-exports', EXPORTS)

  return {
    ...createMailGuards(deps, config),
    /** Counts a request against its client address; limits nothing without a trusted header. */
    async byAddress(request: FastifyRequest, limit: AddressLimit): Promise<void> {
      const address = limitKeyOf(request, config)
      if (address) await consume(perAddress[limit], keyOf(address), 'over_request_rate_limit')
    },
    /** Counts a sign-in's request to a provider, by address and in total: to the provider all are ours. */
    async countProviderRequest(request: FastifyRequest): Promise<void> {
      const address = limitKeyOf(request, config)
      const perAddress = () => consume(providerRequestsPerAddress, keyOf(address ?? ''), 'over_request_rate_limit')
      const ofAll = () => consume(providerRequests, 'all', 'over_request_rate_limit')
      await countAll(address ? [perAddress, ofAll] : [ofAll])
    },
    /** Counts a refused sign-in; false if too many were stored already, of this user or client or in total. */
    async isRefusalStored({ method, userId, client }: Refusal): Promise<boolean> {
      const caller = userId ?? client
      if (caller && isOver(await refusalsStoredOfOne.count(keyOf(`${method} ${caller}`)))) return false
      return !isOver(await refusalsStored.count(userId ? 'users' : 'all'))
    },
    /** Counts a device's code that a user enters, by client address or, without a trusted header, by user. */
    deviceCodeEntered: (request: FastifyRequest, userId: string) =>
      consume(wrongDeviceCodes, keyOf(limitKeyOf(request, config) ?? userId), 'over_request_rate_limit'),
    /** Counts a user's request for another address, whose answer reveals whether it is taken. */
    addressChange: (userId: string) => consume(addressChanges, userId, 'over_request_rate_limit'),
    /** Counts a user's request to trust a device. */
    deviceTrusted: (userId: string) => consume(devicesTrusted, userId, 'over_request_rate_limit'),
    /** Counts a sample of a mail that an admin sends to the own address. */
    sampleSent: (userId: string) => consume(samplesSent, userId, 'over_email_send_rate_limit'),
    /** Counts a user's request for an export of the account's data. */
    dataExported: (userId: string) => consume(exports, userId, 'over_request_rate_limit'),
    /** Counts a sign-in with a device's token against its client address; undefined after too many. */
    async deviceAttempt(request: FastifyRequest): Promise<Refund | undefined> {
      const address = limitKeyOf(request, config)
      const counted = address ? await perAddress.devices.count(keyOf(address)) : async () => {}
      if (typeof counted === 'function') return counted
      countLimitHit(perAddress.devices.name)
      return undefined
    },
    /** Counts a guess at the fixed code of a test address; undefined after too many wrong ones. */
    async fixedCodeGuessed(address: string): Promise<Refund | undefined> {
      const counted = await fixedCodeGuesses.count(keyOf(address))
      if (typeof counted === 'function') return counted
      countLimitHit(fixedCodeGuesses.name)
      return undefined
    },
    /**
     * Counts a challenge or answer of a second factor by session, so that sessions do not exhaust each other's limit.
     */
    countFactorAttempt: (factorId: string, sessionId: string) =>
      consume(perFactor, keyOf(`${factorId} ${sessionId}`), 'over_request_rate_limit'),
  }
}

const isOver = (counted: Refund | number) => typeof counted === 'number'
