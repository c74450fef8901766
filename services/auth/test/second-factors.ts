// Second factors of a user: an authenticator app, and the calls that prove one.
import { createHmac } from 'node:crypto'
import { type Answer, type SignedIn, type TestService, toSignedIn } from './service.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 6238 by the letter, apart from the library that the service uses. */
export function totpCode(secret: string, at: Date, skewSteps = 0): string {
  const bits = [...secret].map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0')).join('')
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(at.getTime() / 30_000) + skewSteps))
  const mac = createHmac('sha1', key).update(counter).digest()
  const offset = (mac.at(-1) as number) & 15
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

export interface Totp {
  id: string
  secret: string
}

export async function enrollTotp(service: TestService, { auth }: Pick<SignedIn, 'auth'>, name = ''): Promise<Totp> {
  const { body } = await service.post('/factors', { factor_type: 'totp', friendly_name: name }, auth)
  return { id: body.id, secret: body.totp.secret }
}

export async function challenge(service: TestService, { auth }: Pick<SignedIn, 'auth'>, id: string): Promise<string> {
  return (await service.post(`/factors/${id}/challenge`, {}, auth)).body.id
}

/** Verifies by the app's code; each code works once, so the clock advances to the next. */
export async function verifyTotp(service: TestService, user: Pick<SignedIn, 'auth'>, totp: Totp): Promise<Answer> {
  service.clock.advance({ seconds: 30 })
  const challenge_id = await challenge(service, user, totp.id)
  return service.post(
    `/factors/${totp.id}/verify`,
    { challenge_id, code: totpCode(totp.secret, service.clock.now()) },
    user.auth,
  )
}

export interface SecondUser extends SignedIn {
  email: string
  totp: Totp
  recoveryCodes: string[]
}

/** A user with a proven app, in a session of aal2. */
export async function withTotp(
  service: TestService,
  email = `second-${Math.random().toString(36).slice(2)}@example.com`,
): Promise<SecondUser> {
  const user = await service.signedIn(email)
  const totp = await enrollTotp(service, user)
  const { body } = await verifyTotp(service, user, totp)
  return { ...toSignedIn(body), email, totp, recoveryCodes: body.recovery_codes }
}

/** A person who knows the password: a new session of aal1. */
export async function signInAgain(service: TestService, email: string): Promise<SignedIn> {
  return toSignedIn((await service.post('/token?grant_type=password', { email, password: 'correct horse' })).body)
}

export const claimsOf = ({ accessToken }: Pick<SignedIn, 'accessToken'>) =>
  JSON.parse(Buffer.from(accessToken.split('.')[1] as string, 'base64url').toString())

export const refresh = (service: TestService, refresh_token: string) =>
  service.post('/token?grant_type=refresh_token', { refresh_token })
