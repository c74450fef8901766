// Captchas: whoever asks a public endpoint must show the provider's proof of being a person. The one rule: an admin and a
// grant that needs a secret already are not asked. Which endpoints check, and when: contract/auth-core.md 1.1 and 3.6.
import { fetchText } from '@services/common/fetch-text'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Config } from '../config.ts'
import { apiError } from '../errors.ts'
import { countCaptcha } from '../metrics.ts'
import { type AdminDeps, isAdminRequest } from './admin-only.ts'
import { trustedAddress } from './client.ts'

export interface Captcha {
  /** Throws captcha_failed without a valid proof in the request's body, service_unavailable when nobody can tell. */
  check(request: FastifyRequest): Promise<void>
}

export type CaptchaDeps = AdminDeps & { config: Pick<Config, 'captcha' | 'limits' | 'server'> }

/** Where the proof is in a body, for the schemas of the routes that check it. Its form is the check's business. */
export const captchaFields = {
  captcha_token: Type.Optional(Type.Unknown({ description: "The captcha's proof, where captchas are on." })),
  gotrue_meta_security: Type.Optional(Type.Unknown({ description: 'The same as `captcha_token` inside.' })),
}

const VERIFY_URLS = {
  hcaptcha: 'https://hcaptcha.com/siteverify',
  turnstile: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
} as const

/** hCaptcha's proofs have a few kilobytes, Turnstile's at most two. */
const MAX_PROOF_LENGTH = 16 * 1024
/** Providers answer some hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_CODES = 5
/** A provider that failed is rarely back at once. */
const RETRY_AFTER_SECONDS = 5

export function createCaptcha(deps: CaptchaDeps): Captcha {
  const { enabled, provider, secret = '', timeoutSeconds, url = VERIFY_URLS[provider] } = deps.config.captcha
  const bounds = { timeoutMs: timeoutSeconds * 1000, maxBytes: MAX_ANSWER_BYTES }
  return {
    async check(request) {
      if (!enabled || (await isAdminRequest(request, deps))) return
      const proof = proofIn(request.body)
      if (!proof) {
        countCaptcha('missing')
        throw apiError('captcha_failed', { message: 'captcha protection: request disallowed (no captcha_token found)' })
      }
      const form = new URLSearchParams({ secret, response: proof })
      const address = trustedAddress(request, deps.config)
      if (address) form.set('remoteip', address)
      const verdict = await ask(url, form, bounds).catch((cause: unknown) => {
        countCaptcha('unavailable')
        request.log.error({ err: cause, provider }, 'captcha provider did not answer')
        throw apiError('service_unavailable', { retryAfterSeconds: RETRY_AFTER_SECONDS, cause })
      })
      countCaptcha(verdict.success ? 'ok' : 'refused')
      if (verdict.success) return
      // The secret is ours: the caller is told the code as of any refusal, the operator has to mend it.
      if (verdict.codes.some((code) => code.endsWith('-input-secret'))) {
        request.log.error({ provider, codes: verdict.codes }, 'captcha provider does not accept the secret')
      }
      throw apiError('captcha_failed', {
        message: `captcha protection: request disallowed (${verdict.codes.join(', ') || 'no reason given'})`,
      })
    },
  }
}

/** The top level as the specification says, else nested as the public client sends it; blank is none. */
function proofIn(body: unknown): string | undefined {
  const { captcha_token: top, gotrue_meta_security: nested } = (body ?? {}) as Record<string, unknown>
  const inside =
    typeof nested === 'object' && nested !== null ? (nested as Record<string, unknown>).captcha_token : null
  const proof = [top, inside].find((text): text is string => typeof text === 'string' && text.trim() !== '')
  return proof && proof.length <= MAX_PROOF_LENGTH ? proof : undefined
}

/** Both providers take and answer the same; their HTTP status says nothing that the body does not. */
async function ask(url: string, form: URLSearchParams, bounds: { timeoutMs: number; maxBytes: number }) {
  const { text } = await fetchText(url, { method: 'POST', body: form }, bounds)
  const answer: unknown = JSON.parse(text)
  const { success, 'error-codes': codes } = (answer ?? {}) as Record<string, unknown>
  if (typeof success !== 'boolean') throw new Error('the answer of the captcha provider has no verdict')
  return { success, codes: presentable(codes) }
}

/** What a provider writes is shown only if it looks like its documented codes. */
const presentable = (codes: unknown): string[] =>
  (Array.isArray(codes) ? codes : [])
    .filter((code): code is string => typeof code === 'string' && /^[a-z0-9_-]{1,64}$/i.test(code))
    .slice(0, MAX_CODES)
