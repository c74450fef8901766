// Captchas: callers of public endpoints prove to a provider that they are human. Admins, and grants that require a
// secret, need none. Endpoints that check: contract/auth-core.md 1.1 and 3.6; tests: captcha.test.ts.
import { fetchText } from '@services/common/upstream/fetch-text'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import { countCaptcha } from '../../metrics.ts'
import { trustedAddress } from '../limits/client.ts'
import { type AdminDeps, isAdminRequest } from './admin-only.ts'

/** Fields of a body with the proof, for schemas; the check validates their form. */
export const captchaFields = {
  captcha_token: Type.Optional(Type.Unknown({ description: 'Proof of the captcha, if captchas are enabled.' })),
  gotrue_meta_security: Type.Optional(Type.Unknown({ description: 'Object with the same `captcha_token`.' })),
}

const VERIFY_URLS = {
  hcaptcha: 'https://hcaptcha.com/siteverify',
  turnstile: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
} as const

/** hCaptcha's proofs take a few kilobytes, Turnstile's at most two. */
const MAX_PROOF_LENGTH = 16 * 1024
/** Providers answer with some hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_CODES = 5
const RETRY_AFTER_SECONDS = 5

export function createCaptcha(deps: AdminDeps & { config: Pick<Config, 'captcha' | 'limits' | 'server'> }) {
  const { enabled, provider, secret = '', timeoutSeconds, url = VERIFY_URLS[provider] } = deps.config.captcha
  const bounds = { timeoutMs: timeoutSeconds * 1000, maxBytes: MAX_ANSWER_BYTES }
  return {
    /** Throws captcha_failed without a valid proof in the body, service_unavailable if the provider cannot be asked. */
    async check(request: FastifyRequest): Promise<void> {
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
        request.log.error({ err: cause, provider }, 'captcha check failed: no answer from the provider')
        throw apiError('service_unavailable', { retryAfterSeconds: RETRY_AFTER_SECONDS, cause })
      })
      countCaptcha(verdict.success ? 'ok' : 'refused')
      if (verdict.success) return
      // A wrong secret is the operator's to fix; the caller gets the code of any refusal.
      if (verdict.codes.some((code) => code.endsWith('-input-secret'))) {
        request.log.error({ provider, codes: verdict.codes }, 'captcha check failed: the provider refuses the secret')
      }
      throw apiError('captcha_failed', {
        message: `captcha protection: request disallowed (${verdict.codes.join(', ') || 'no reason given'})`,
      })
    },
  }
}

/** Reads the top level (specification), else the nested field that the public client sends; blank is none. */
function proofIn(body: unknown): string | undefined {
  const { captcha_token: top, gotrue_meta_security: nested } = (body ?? {}) as Record<string, unknown>
  const inside =
    typeof nested === 'object' && nested !== null ? (nested as Record<string, unknown>).captcha_token : null
  const proof = [top, inside].find((text): text is string => typeof text === 'string' && text.trim() !== '')
  return proof && proof.length <= MAX_PROOF_LENGTH ? proof : undefined
}

/** Both providers share request and answer; the HTTP status adds nothing to the body. */
async function ask(url: string, form: URLSearchParams, bounds: { timeoutMs: number; maxBytes: number }) {
  const { text } = await fetchText(url, { method: 'POST', body: form }, bounds)
  const answer: unknown = JSON.parse(text)
  const { success, 'error-codes': codes } = (answer ?? {}) as Record<string, unknown>
  if (typeof success !== 'boolean') throw new Error('the answer of the captcha provider lacks success')
  return { success, codes: presentable(codes) }
}

/** Passes on only texts that look like documented codes. */
const presentable = (codes: unknown): string[] =>
  (Array.isArray(codes) ? codes : [])
    .filter((code): code is string => typeof code === 'string' && /^[a-z0-9_-]{1,64}$/i.test(code))
    .slice(0, MAX_CODES)
