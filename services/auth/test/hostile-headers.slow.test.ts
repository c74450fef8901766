import { hostileRequest, isWellAnswered, SMUGGLED } from '@services/common/testing/http/hostile-heads'
import { hostileRuns, sayHostile } from '@services/common/testing/http/hostile-run'
import { say } from '@services/common/testing/http/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from './service.ts'

const REQUESTS = 10 * hostileRuns()

let service: TestService
let port: number
beforeAll(async () => {
  service = await startTestService({
    AUTH_API_MAX_REQUEST_DURATION: '10',
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
    const { problems, statuses } = await sayHostile(
      { port, count: REQUESTS, requestOf: (seed) => hostileRequest(target, seed) },
      isWellAnswered,
    )
    expect(problems).toBe('')
    // Neither heads that are all refused by the parser nor ones that are all well would show anything.
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['200', '400', '401', '404']))
  },
  120_000 + REQUESTS * 400,
)

test.for(SMUGGLED)('%s: the request is refused, and no second one is read out of it', async ([, bytes]) => {
  const { status, answers } = await say(port, bytes('POST /signup HTTP/1.1\r\nHost: a'))
  expect([status, answers]).toEqual([400, 1])
})
