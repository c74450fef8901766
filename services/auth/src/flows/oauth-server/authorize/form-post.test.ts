// Answers that a page posts (contract/auth-oauth-server.md).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { authorizePath, begun, CALLBACK, decide, oauthSettings, registered, view } from '../testing/applications.ts'

let service: TestService
let clientId: string
beforeAll(async () => {
  service = await startTestService(await oauthSettings())
  clientId = (await registered(service)).clientId
})
afterAll(() => service.close())

/** Fields of the form of a page, and where it leads. */
function formOf(text: string) {
  const fields = [...text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  return {
    action: /<form method="post" action="([^"]*)">/.exec(text)?.[1],
    fields: Object.fromEntries(fields.map(([, name, value]) => [name, value?.replaceAll('&#39;', "'")])),
  }
}

const posted = { response_mode: 'form_post' }

async function answered(action: 'approve' | 'deny') {
  const user = await service.signedIn()
  const id = await begun(service, clientId, posted)
  await view(service, id, user.auth)
  const { body } = await decide(service, id, user.auth, action)
  return { id, url: new URL(body.redirect_url) }
}

test('the code stands in no address: a page of this service posts it by a file of its own, once', async () => {
  const { id, url } = await answered('approve')
  expect([url.origin, url.search, url.pathname.startsWith('/oauth/form-post/')]).toEqual([
    'https://auth.example',
    '',
    true,
  ])
  expect((await service.get(url.pathname, { purpose: 'prefetch' })).status).toBe(204)
  const page = await service.get(url.pathname)
  expect(formOf(page.text)).toEqual({
    ...{ action: CALLBACK },
    fields: { code: expect.stringMatching(/^[\w-]{43}$/), state: 'st', iss: 'https://auth.example' },
  })
  expect(page.text).toMatch(/<script type="module" src="\/ui\/assets\/post-at-once\.js/)
  expect(page.headers).toMatchObject({
    ...{ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' },
    'content-security-policy': expect.stringMatching(/script-src 'self';.*form-action \*; frame-ancestors 'none'/),
  })
  expect((await service.get(url.pathname)).status).toBe(404)
  expect((await service.get(`/oauth/form-post/${id}`)).status).toBe(404)
})

test('the id of a request, which its application knows, opens no page', async () => {
  const { id, url } = await answered('approve')
  const [, other] = url.pathname.split(id)
  const forged = await begun(service, clientId, posted)
  for (const name of [id, `${id}${'x'.repeat(43)}`, `${forged}${other}`]) {
    expect((await service.get(`/oauth/form-post/${name}`)).status).toBe(404)
  }
  expect((await service.get(url.pathname)).status).toBe(200)
})

test('the page is there for a minute', async () => {
  const { url } = await answered('approve')
  service.clock.advance({ seconds: 60 })
  expect((await service.get(url.pathname)).status).toBe(404)
})

test('refusals are posted too: of the user, and of a faulty request', async () => {
  const { url } = await answered('deny')
  const refusals = [
    await service.get(url.pathname),
    await service.get(authorizePath(clientId, { ...posted, scope: 'x' })),
  ]
  expect(refusals.map(({ status, text }) => [status, formOf(text).fields.error])).toEqual([
    [200, 'access_denied'],
    [200, 'invalid_scope'],
  ])
})

test('an address of an application on a device takes no form', async () => {
  const redirect_uri = 'com.example.app:/cb'
  const native = await registered(service, { redirect_uris: [redirect_uri], client_type: 'public' })
  const answer = await service.get(authorizePath(native.clientId, { ...posted, redirect_uri }))
  expect(answer.headers.location).toMatch(/^com\.example\.app:\/cb\?error=invalid_request/)
})
