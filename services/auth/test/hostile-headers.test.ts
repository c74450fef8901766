import { hostileRequest, SMUGGLED } from '@services/common/testing/hostile-heads'
import { say } from '@services/common/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from './service.ts'

/** Another one looks elsewhere: HOSTILE_SEED=7 HOSTILE_RUNS=1000. A failure shows its request. */
const SEED = Number(process.env.HOSTILE_SEED ?? 20261121)
const REQUESTS = 10 * Number(process.env.HOSTILE_RUNS ?? 30)

/** As many at once: those whose body never comes are ended after three seconds. */
const AT_ONCE = 20

const INNARDS = /node_modules|\.ts:\d|\n\s+at |\bselect .* from\b|violates|syntax error|invalid input|SQLSTATE|kysely/i

let service: TestService
let port: number
beforeAll(async () => {
  service = await startTestService({
    AUTH_API_MAX_REQUEST_DURATION: '3',
    AUTH_RATE_LIMIT_HEADER: 'X-Real-IP',
    AUTH_SECURITY_SB_FORWARDED_FOR_ENABLED: 'true',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  })
  port = Number(new URL(await service.app.listen({ port: 0, host: '127.0.0.1' })).port)
})
afterAll(() => service.close())

test(
  'whatever stands in the head of a request, on the wire, the answer comes, is no failure and tells nothing of the inside',
  async () => {
    const { auth } = await service.signedIn()
    const target = {
      paths: [
        ...[
          '/signup',
          '/token?grant_type=password',
          '/otp',
          '/recover',
          '/verify?token=x&type=signup',
          '/user',
          '/settings',
        ],
        ...[
          '/authorize?provider=github',
          '/callback',
          '/logout',
          '/admin/users',
          '/health',
          '/.well-known/jwks.json',
          '/x',
        ],
      ],
      headers: {
        Authorization: [auth.authorization, service.admin.authorization],
        'Content-Type': ['application/json'],
        'Accept-Language': ['de', 'en;q=0.5'],
        'X-JWT-AUD': ['authenticated'],
        'X-Real-IP': ['192.0.2.1', '2001:db8::1'],
        'Sb-Forwarded-For': ['192.0.2.1'],
        'X-Forwarded-For': ['192.0.2.1, 10.0.0.1'],
        'X-Forwarded-Host': ['site.example'],
        'X-Supabase-Api-Version': ['2024-01-01'],
        Redirect_To: ['https://site.example/welcome'],
        Referer: ['https://site.example/'],
        'User-Agent': ['test'],
      },
      body: '{"email":"ada@example.com","password":"correct horse"}',
    }
    const problems: string[] = []
    const statuses = new Set<number>()
    let next = 0
    const sendAll = async () => {
      for (let number = next++; number < REQUESTS; number = next++) {
        const request = hostileRequest(target, SEED + number)
        const { status, head, body } = await say(port, request)
        statuses.add(status)
        const isJson = /^content-type: application\/json/im.test(head)
        const isFine =
          status >= 200 && status < 500 && !INNARDS.test(body) && (!isJson || body === '' || JSON.parse(body))
        if (!isFine) problems.push(`${JSON.stringify(request).slice(0, 1_500)}\n${status} ${body.slice(0, 300)}`)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, sendAll))
    expect(problems.slice(0, 10).join('\n\n')).toBe('')
    // Neither heads that are all refused by the parser nor ones that are all well would show anything.
    expect([...statuses]).toEqual(expect.arrayContaining([200, 400, 401, 404]))
  },
  REQUESTS * 400,
)

test.for(SMUGGLED)('%s: the request is refused, and no second one is read out of it', async ([, bytes]) => {
  const { status, answers } = await say(port, bytes)
  expect([status, answers]).toEqual([400, 1])
})
