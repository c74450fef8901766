import type { Visit } from '../../http/hosted/visit.ts'
import { type TypedAddress, textOf } from './address.ts'

/** Refusals of a second request within moments: the first one's code is on its way. */
const SENT_BEFORE = ['over_email_send_rate_limit', 'over_sms_send_rate_limit']

/** Parameters of a request for a message whose link leads back to this browser: query and body. */
export function arrivalOf(visit: Visit) {
  const { redirect_to: target, ...challenge } = visit.arrival()
  return { query: target === undefined ? '' : `?${new URLSearchParams({ redirect_to: target })}`, challenge }
}

/** Requests a code to sign in with, and leads to the page that takes it. */
export async function sendCode(visit: Visit, address: TypedAddress) {
  const { query, challenge } = arrivalOf(visit)
  const body = { ...address, create_user: false, ...('email' in address && challenge) }
  const answer = await visit.api('POST', `/otp${query}`, body)
  const typed = textOf(address)
  if (!answer.ok && !SENT_BEFORE.includes(answer.code)) {
    return visit.goTo('/ui/sign-in', { carry: { typed, error: visit.explain(answer) } })
  }
  const type = 'email' in address ? 'email' : 'sms'
  return visit.goTo('/ui/code', {
    carry: { address: typed, type, ...(!answer.ok && { problem: visit.explain(answer) }) },
  })
}
