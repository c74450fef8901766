// Frames that notify applications of the end of a browser's session (OpenID Connect Front-Channel Logout 1.0).
import { randomUUID } from 'node:crypto'
import { PAGE_POLICY } from '@services/common/pages/document'
import { perFile } from '@services/common/testing/per-file'
import { decodeJwt } from 'jose'
import { test as base, expect } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { visitor } from '../../pages/oauth/testing/visitor.ts'
import type { SeenPage } from '../../pages/testing/pages.ts'
import { approved, begun, hostedSettings, newVerifier, registered } from '../testing/applications.ts'

const FRAME = 'https://app.example/out?a=b'

const test = base.extend<object & { service: TestService }>({
  service: perFile(async () =>
    startTestService({
      ...(await hostedSettings()),
      AUTH_SELF_DELETION_ENABLED: 'true',
      AUTH_WORKERS_ENABLED: 'false',
    }),
  ),
})

/** A user whose browser signs in to applications by our pages. */
async function signedIn(service: TestService) {
  const user = await visitor(service)
  await user.signIn(await user.open('/ui/account'))
  const exchanged = async (clientId: string, code: string, verifier: string) => {
    const form = { grant_type: 'authorization_code', client_id: clientId, code, code_verifier: verifier }
    const { body } = await service.submit('/oauth/token', form)
    return { idToken: String(body.id_token), sid: String(decodeJwt(body.access_token).session_id) }
  }
  const application = (client: object = {}) =>
    registered(service, { token_endpoint_auth_method: 'none', frontchannel_logout_uri: FRAME, ...client })
  const enter = async (clientId: string, parameters: { scope?: string; redirect_uri?: string } = {}) => {
    const { verifier, challenge } = newVerifier()
    const id = await begun(service, clientId, { scope: 'openid', ...parameters, code_challenge: challenge })
    const left = await user.press(await user.open(`/ui/consent?authorization_id=${id}`), { answer: 'allow' })
    service.clock.advance({ seconds: 1 })
    return exchanged(clientId, new URL(left.location ?? '').searchParams.get('code') ?? '', verifier)
  }
  const applications = async () => {
    const mine = 'select id from sessions where user_id = $1 and oauth_client_id is not null order by created_at, id'
    return (await service.deps.pool.query(mine, [user.userId])).rows.map(({ id }) => id)
  }
  const signOut = async () => user.press(await user.open('/ui/sign-out'))
  return { ...user, application, enter, exchanged, applications, signOut }
}

const frame = (sid: string, address = `${FRAME}&`) => `${address}iss=https%3A%2F%2Fauth.example&sid=${sid}`

const framesIn = ({ text }: SeenPage) =>
  [...text.matchAll(/<iframe src="([^"]*)" hidden sandbox="allow-scripts allow-same-origin"/g)].map(([, address]) =>
    address?.replaceAll('&amp;', '&'),
  )

const policyOf = ({ headers }: SeenPage) => headers['content-security-policy']

test('a sign-out notifies the applications of this browser, ends their sessions, and goes on after three seconds', async ({
  service,
}) => {
  const user = await signedIn(service)
  const far = { redirect_uris: ['https://b.example/cb'], frontchannel_logout_uri: 'https://b.example/out' }
  const [one, other] = [await user.application(), await user.application(far)]
  const first = await user.enter(one.clientId)
  const offline = await user.enter(other.clientId, {
    ...{ scope: 'openid offline_access', redirect_uri: 'https://b.example/cb' },
  })
  const page = await user.signOut()
  expect(framesIn(page)).toEqual([frame(offline.sid, 'https://b.example/out?'), frame(first.sid)])
  expect(policyOf(page)).toBe(`${PAGE_POLICY}; frame-src https://b.example https://app.example`)
  expect([page.status, page.location, page.headers['referrer-policy']]).toEqual([200, '/ui/sign-in', 'no-referrer'])
  for (const text of ['content="3;url=/ui/sign-in"', 'You are signed out.']) expect(page.text).toContain(text)
  // offline_access outlives the browser.
  expect(await user.applications()).toEqual([offline.sid])
  expect((await user.open('/ui/account')).title).toBe('Sign in')
})

test('a sign-out that an application asked for notifies it too, and goes on to its address', async ({ service }) => {
  const user = await signedIn(service)
  const bye = 'https://app.example/bye'
  const [one, other] = [await user.application({ post_logout_redirect_uris: [bye] }), await user.application()]
  const [asking, second] = [await user.enter(one.clientId), await user.enter(other.clientId)]
  const query = new URLSearchParams({ id_token_hint: asking.idToken, post_logout_redirect_uri: bye })
  const { headers } = await user.browser.get(`/oauth/logout?${query}`)
  const page = await user.open(String(headers.location).replace('https://auth.example', ''))
  expect([framesIn(page), page.location]).toEqual([[frame(asking.sid), frame(second.sid)], bye])
  const names = { frontchannel_logout_supported: true, frontchannel_logout_session_supported: true }
  expect((await service.get('/.well-known/openid-configuration')).body).toMatchObject(names)
  expect(await user.applications()).toEqual([])
})

test('the deletion of an account notifies the applications of this browser', async ({ service }) => {
  const user = await signedIn(service)
  const { sid } = await user.enter((await user.application()).clientId)
  const page = await user.open('/ui/account/deletion')
  const left = await user.press(page, { sure: 'yes', current_password: 'correct horse' })
  expect([framesIn(left), left.location]).toEqual([[frame(sid)], '/ui/sign-in'])
  expect(left.text).toContain('Your account is deleted.')
})

test('sessions that this browser did not approve, and applications without an address, get no frame', async ({
  service,
}) => {
  const user = await signedIn(service)
  await user.enter((await user.application({ frontchannel_logout_uri: '' })).clientId)
  const { clientId } = await user.application()
  const { code, verifier } = await approved(service, clientId, user.auth)
  const elsewhere = await user.exchanged(clientId, code, verifier)
  const page = await user.signOut()
  const shown = [page.title, page.news, framesIn(page), policyOf(page)]
  expect(shown).toEqual(['Sign in', 'You are signed out.', [], PAGE_POLICY])
  expect(await user.applications()).toEqual([elsewhere.sid])
})

test('a page has ten frames at most, one of each application, the latest session first', async ({ service }) => {
  const user = await signedIn(service)
  const { clientId } = await user.application()
  const { sid } = await user.enter(clientId)
  const hosts = Array.from({ length: 11 }, (_, index) => `https://${'a'.repeat(60)}.${index}a.example`)
  for (const [index, host] of hosts.entries()) {
    const further = await user.application({ redirect_uris: [host], frontchannel_logout_uri: `${host}/out` })
    for (const seconds of [1, 2]) {
      await service.deps.pool.query(
        `insert into sessions (id, user_id, amr, refreshed_at, created_at, oauth_client_id, scopes, resources, approved_by)
          select $1, user_id, '[]', created_at, created_at + make_interval(secs => $2), $3, '[]', '[]', approved_by
          from sessions where id = $4`,
        [randomUUID(), index * 10 + seconds, further.clientId, sid],
      )
    }
  }
  const page = await user.signOut()
  const origins = framesIn(page).map((address) => new URL(String(address)).origin)
  expect(origins).toEqual(hosts.toReversed().slice(0, 10))
  expect(policyOf(page)).toBe(`${PAGE_POLICY}; frame-src ${origins.join(' ')}`)
  expect(await user.applications()).toEqual([])
})
