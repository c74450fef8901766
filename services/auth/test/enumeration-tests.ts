// Whether any order of requests answers differently for an address with an account and for one without.
import { expect } from 'vitest'
import type { Answer, TestService } from './service.ts'

/** Password that a stranger makes up. */
const PASSWORD = 'a stranger chose this'

/** Requests that a stranger can send for any address. */
export const STRANGERS_REQUESTS = {
  'a sign-up': (email) => ['/signup', { email, password: PASSWORD }],
  'a sign-in with its password': (email) => ['/token?grant_type=password', { email, password: PASSWORD }],
  'a sign-in with another password': (email) => ['/token?grant_type=password', { email, password: 'wrong horse' }],
  'a link': (email) => ['/otp', { email }],
  'a recovery': (email) => ['/recover', { email }],
  'a resend': (email) => ['/resend', { email, type: 'signup' }],
  'a guess at a code': (email) => ['/verify', { email, type: 'email', token: '000000' }],
} satisfies Record<string, (email: string) => [path: string, body: object]>

export type StrangersRequest = keyof typeof STRANGERS_REQUESTS
export const REQUESTS = Object.keys(STRANGERS_REQUESTS) as StrangersRequest[]

/** Ways in which an address is known to the service, or not. */
export const KNOWN = {
  nobody: async () => {},
  confirmed: async (service, email) => void (await service.signedIn(email)),
  invited: async (service, email) => void (await service.post('/invite', { email }, service.admin)),
} satisfies Record<string, (service: TestService, email: string) => Promise<void>>

let addresses = 0

/** Sends the requests for an address of each kind and expects the same answers for all of them. */
export async function expectEqualAnswers(service: TestService, order: readonly StrangersRequest[]): Promise<void> {
  const answers: Record<string, unknown[]> = {}
  for (const [kind, make] of Object.entries(KNOWN)) {
    const email = `known-${++addresses}@example.com`
    await make(service, email)
    // The gap after an invitation would differ from none.
    service.clock.advance({ seconds: 901 })
    answers[kind] = []
    for (const name of order) {
      const [path, body] = STRANGERS_REQUESTS[name](email)
      answers[kind].push(withoutOwn(await service.post(path, body), email))
      // A worker records the claim of a link once more, after whichever request came meanwhile.
      await service.settled()
    }
  }
  for (const kind of Object.keys(KNOWN))
    expect({ kind, answers: answers[kind] }).toEqual({ kind, answers: answers.nobody })
}

/** The answer without ids, times and the address, which differ between any two requests. */
function withoutOwn({ status, headers, text }: Answer, email: string) {
  const body = text
    .replaceAll(email, '<email>')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
  return { status, retryAfter: headers['retry-after'], body }
}
