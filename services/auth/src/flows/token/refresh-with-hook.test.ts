import { statementsOf } from '@services/common/testing/database/statements'
import { expect, onTestFinished } from 'vitest'
import { challenge, totpCode, withTotp } from '../../../test/second-factors.ts'
import { type Answer, test as base, fragmentOf, type TestService } from '../../../test/service.ts'
import { startUpstream } from '../../../test/upstream.ts'
import { openPage, send } from '../pages/testing/pages.ts'

const POINT = 'AUTH_HOOK_CUSTOM_ACCESS_TOKEN'
const INTERVAL_SECONDS = 3

interface Hooked {
  on: TestService
  /** Does this once, while the next question waits. */
  meanwhile(work: () => Promise<void>): void
}

const test = base.extend<object & { hooked: Hooked }>({
  hooked: [
    async ({ service }, use) => {
      const receiver = await startUpstream(() => {})
      let pending: (() => Promise<void>) | undefined
      receiver.answer(async (response, body) => {
        const work = pending
        pending = undefined
        await work?.()
        const { claims } = JSON.parse(body)
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ claims }))
      })
      const on = await service.with({
        AUTH_HOSTED_PAGES_ENABLED: 'true',
        [`${POINT}_ENABLED`]: 'true',
        [`${POINT}_URI`]: receiver.url,
        [`${POINT}_UNSIGNED`]: 'true',
        AUTH_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: `${INTERVAL_SECONDS}s`,
      })
      const meanwhile: Hooked['meanwhile'] = (work) => {
        pending = work
      }
      await use({ on, meanwhile })
      await on.close()
      await receiver.close()
    },
    { scope: 'file' },
  ],
})

const refresh = (on: TestService, refresh_token: string, agent = 'a browser') =>
  on.post('/token?grant_type=refresh_token', { refresh_token }, { 'user-agent': agent })

async function expectGood(on: TestService, { status, body }: Answer) {
  expect(status).toBe(200)
  expect((await refresh(on, body.refresh_token)).status).toBe(200)
}

test('a refresh that others overtake by two while its hook is asked gets their token, and ends nothing', async ({
  hooked: { on, meanwhile },
}) => {
  const { refreshToken } = await on.signedIn('overtaken@example.com')
  let newest: Answer | undefined
  meanwhile(async () => {
    const { body } = await refresh(on, refreshToken)
    newest = await refresh(on, body.refresh_token)
  })
  const slow = await refresh(on, refreshToken, 'a server')
  expect(newest?.status).toBe(200)
  expect(slow.body.refresh_token).toBe(newest?.body.refresh_token)
  await expectGood(on, slow)
})

test('a refresh by another client is judged by the time of its request, however long its hook takes', async ({
  hooked: { on, meanwhile },
}) => {
  const { refreshToken } = await on.signedIn('slow@example.com')
  let other: Answer | undefined
  meanwhile(async () => {
    other = await refresh(on, refreshToken)
    on.clock.advance({ seconds: INTERVAL_SECONDS + 1 })
  })
  const slow = await refresh(on, refreshToken, 'a server')
  expect(slow.body.refresh_token).toBe(other?.body.refresh_token)
  await expectGood(on, slow)
})

test('a repeat within the interval stays one when the interval ends while its hook is asked', async ({
  hooked: { on, meanwhile },
}) => {
  const { refreshToken } = await on.signedIn('repeat@example.com')
  const first = await refresh(on, refreshToken)
  meanwhile(async () => on.clock.advance({ seconds: INTERVAL_SECONDS + 1 }))
  const repeated = await refresh(on, refreshToken, 'a server')
  expect(repeated.body.refresh_token).toBe(first.body.refresh_token)
  await expectGood(on, repeated)
})

test('a token from before a second factor gets none of the raised session, and does not end it', async ({
  hooked: { on, meanwhile },
}) => {
  const user = await withTotp(on)
  const { body } = await on.post('/token?grant_type=password', { email: user.email, password: 'correct horse' })
  const auth = { authorization: `Bearer ${body.access_token}` }
  let raised: Answer | undefined
  meanwhile(async () => {
    on.clock.advance({ seconds: 30 })
    const challenge_id = await challenge(on, { ...user, auth }, user.totp.id)
    const code = totpCode(user.totp.secret, on.clock.now())
    raised = await on.post(`/factors/${user.totp.id}/verify`, { challenge_id, code }, auth)
  })
  const slow = await refresh(on, body.refresh_token)
  expect(slow).toMatchObject({ status: 400, body: { error_code: 'refresh_token_already_used' } })
  await expectGood(on, raised as Answer)
})

test('a proof at our pages while the hook of a refresh is asked leaves the application signed in', async ({
  hooked: { on, meanwhile },
}) => {
  const email = 'shares@example.com'
  await on.signedIn(email)
  const browser = on.otherBrowser()
  const typed = await send(browser, await openPage(browser, '/ui/sign-in'), { address: email })
  const { refresh_token = '' } = fragmentOf(await send(browser, typed, { password: 'correct horse' }))
  on.clock.advance({ seconds: 16 * 60 })
  const asked = await openPage(browser, '/ui/account/confirm?next=/ui/account')
  meanwhile(async () => {
    expect((await send(browser, asked, { password: 'correct horse' })).title).toBe('Your account')
  })
  await expectGood(on, await refresh(on, refresh_token))
})

test('a token used again after the interval still ends its session', async ({ hooked: { on } }) => {
  const { refreshToken } = await on.signedIn('thief@example.com')
  const next = await refresh(on, refreshToken)
  on.clock.advance({ seconds: INTERVAL_SECONDS + 1 })
  expect((await refresh(on, refreshToken, 'a thief')).body.error_code).toBe('refresh_token_already_used')
  expect((await refresh(on, next.body.refresh_token)).body.error_code).toBe('refresh_token_not_found')
})

test('a hook of new users alone adds no statement to a refresh or a sign-in by password', async ({ service }) => {
  const hooks = await service.with({
    AUTH_HOOK_BEFORE_USER_CREATED_ENABLED: 'true',
    AUTH_HOOK_BEFORE_USER_CREATED_URI: 'pg-functions://postgres/public/unused',
    AUTH_HOOK_AFTER_USER_CREATED_ENABLED: 'true',
    AUTH_HOOK_AFTER_USER_CREATED_URI: 'pg-functions://postgres/public/unused',
  })
  onTestFinished(() => hooks.close())
  const email = 'fast@example.com'
  const { refreshToken } = await service.signedIn(email)
  const begun = async (ask: () => Promise<Answer>) => {
    const texts = await statementsOf(async () => expect((await ask()).status).toBe(200))
    expect(texts).not.toEqual([])
    return texts.filter((text) => text === 'begin').length
  }
  const password = { email, password: 'correct horse' }
  const create = () => service.post('/admin/users', { email: 'counted@example.com' }, service.admin)
  expect(await begun(create)).toBeGreaterThan(0)
  expect(await begun(() => refresh(hooks, refreshToken))).toBe(0)
  const signIn = (on: TestService) => () => on.post('/token?grant_type=password', password)
  expect(await begun(signIn(hooks))).toBe(await begun(signIn(service)))
})
