import { test as base, expect } from 'vitest'
import { challenge } from '../../../test/second-factors.ts'
import { codeIn, startTestService, type TestService } from '../../../test/service.ts'
import { startUpstream } from '../../../test/upstream.ts'
import { unsignedHooks } from '../../../test/upstreams/hook-receiver.ts'
import { type SmsUpstream, startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'

type Reply = [status: number, answer: object]

/** Answers of a hook that leave a request without a token. */
const FAILURES: [string, Reply][] = [
  ['fails', [500, {}]],
  ['refuses', [200, { error: { http_code: 403, message: 'not today' } }]],
  ['gives claims that do not fit', [200, { claims: {} }]],
]

/** More than the attempts that end a code. */
const ATTEMPTS = 6

interface Hooked {
  service: TestService
  gateways: SmsUpstream
  /** Sets the answer to the next questions; without one the hook agrees. */
  decide(reply?: Reply): void
}

const test = base.extend<object & { hooked: Hooked }>({
  hooked: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
    async ({}, use) => {
      let reply: Reply | undefined
      const receiver = await startUpstream(() => {})
      receiver.answer((response, body) => {
        const { claims } = JSON.parse(body)
        const [status, answer] = reply ?? [200, { claims }]
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      })
      const gateways = await startSmsGateways()
      const service = await startTestService({
        ...gateways.settings('twilio'),
        ...unsignedHooks(receiver, 'CUSTOM_ACCESS_TOKEN', 'MFA_VERIFICATION_ATTEMPT'),
        AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
        AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
        AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
      })
      const decide: Hooked['decide'] = (next) => {
        reply = next
      }
      await use({ service, gateways, decide })
      await service.close()
      await gateways.close()
      await receiver.close()
    },
    { scope: 'file' },
  ],
})

test.for(FAILURES)(
  'a right code stays good however often the token hook %s; wrong ones still end it',
  async ([how, reply], { hooked: { service, decide } }) => {
    const email = `${how.replaceAll(' ', '-')}@example.com`
    const code = async () => {
      await service.post('/otp', { email })
      return codeIn((await service.mailbox.waitFor(email)).text)
    }
    const token = await code()
    const verify = (typed: string) => service.post('/verify', { type: 'email', email, token: typed })
    decide(reply)
    for (let i = 0; i < ATTEMPTS; i++) {
      const { status, body } = await verify(token)
      expect([status, body.error_code]).not.toContain('otp_expired')
      expect(status).toBeGreaterThanOrEqual(400)
    }
    decide()
    for (let i = 0; i < 4; i++) expect((await verify('000000')).body.error_code).toBe('otp_expired')
    decide(reply)
    await verify(token)
    decide()
    expect((await verify('000000')).body.error_code).toBe('otp_expired')
    expect((await verify(token)).body.error_code).toBe('otp_expired')
  },
)

test.for(FAILURES)(
  'a right code of a phone stays good however often a hook %s',
  async ([how, reply], { hooked: { service, gateways, decide } }) => {
    decide()
    const user = await service.signedIn(`phone-${how.replaceAll(' ', '-')}@example.com`)
    const phone = `491517777${String(FAILURES.findIndex(([name]) => name === how)).padStart(4, '0')}`
    const { body: factor } = await service.post('/factors', { factor_type: 'phone', phone: `+${phone}` }, user.auth)
    const challenge_id = await challenge(service, user, factor.id)
    const code = /\d{6}/.exec((await gateways.waitFor(phone)).text)?.[0]
    const verify = () => service.post(`/factors/${factor.id}/verify`, { challenge_id, code }, user.auth)
    decide(reply)
    for (let i = 0; i < ATTEMPTS; i++) expect((await verify()).status).toBeGreaterThanOrEqual(400)
    decide()
    expect((await verify()).status).toBe(200)
  },
)
