import type { Visit } from '../../http/hosted/visit.ts'
import { type TypedAddress, textOf } from './address.ts'

/** Refusals of a second request within moments: the first one's code is on its way. */
const SENT_BEFORE = ['over_email_send_rate_limit', 'over_sms_send_rate_limit']

export const wasSentBefore = (refusal: { code: string }): boolean => SENT_BEFORE.includes(refusal.code)

/** Parameters of a request for a message whose link leads back to this browser: query and body. */
export function arrivalOf(visit: Visit) {
  const { redirect_to: target, ...challenge } = visit.arrival()
  return { query: target === undefined ? '' : `?${new URLSearchParams({ redirect_to: target })}`, challenge }
}

interface CodeRequest {
  url: string
  body?: object
  /** Type that POST /verify takes. */
  type: string
}

/** Requests a code and leads to the page that takes it; after a refusal, back to the field of the address. */
export async function requestCode(visit: Visit, address: TypedAddress, { url, body, type }: CodeRequest) {
  const { query, challenge } = arrivalOf(visit)
  const answer = await visit.api('POST', url + query, { ...body, ...address, ...('email' in address && challenge) })
  if (answer.ok) return toCode(visit, address, { type })
  const problem = visit.explain(answer)
  if (wasSentBefore(answer)) return toCode(visit, address, { type, news: problem })
  return visit.goTo(visit.path, { carry: { typed: textOf(address), error: problem } })
}

/** Requests a code to sign in with. */
export const sendCode = (visit: Visit, address: TypedAddress) =>
  requestCode(visit, address, {
    ...{ url: '/otp', body: { create_user: false } },
    type: 'email' in address ? 'email' : 'sms',
  })

/** Leads to the page that takes a code, which shows `news`. */
export const toCode = (visit: Visit, address: TypedAddress, shown: { type: string; news?: string }) =>
  visit.goTo('/ui/code', { carry: { address: textOf(address), ...shown } })
