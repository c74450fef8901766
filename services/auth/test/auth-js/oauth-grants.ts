// Requests of applications and what a user granted, by the library.
import { expect } from 'vitest'
import { authorizePath } from '../../src/flows/oauth-server/testing/applications.ts'
import { queryOf } from '../service.ts'
import { adminOf, clientOf, password, test } from './client.ts'

test('oauth: a consent page shows a request and answers it; the user lists and withdraws grants', async ({ open }) => {
  const made = await adminOf(open).oauth.createClient({
    client_name: 'Reports',
    redirect_uris: ['https://app.example/callback'],
  })
  const clientId = made.data?.client_id as string
  const email = 'grants@example.com'
  await open.service.signedIn(email, password)
  const { client } = clientOf(open)
  await client.signInWithPassword({ email, password })
  const begun = async (scope: string) =>
    queryOf(await open.service.get(authorizePath(clientId, { scope }))).authorization_id as string

  const first = await begun('email')
  expect(await client.oauth.getAuthorizationDetails(first)).toMatchObject({
    error: null,
    data: { authorization_id: first, client: { id: clientId, name: 'Reports' }, user: { email }, scope: 'email' },
  })
  const denied = await client.oauth.denyAuthorization(first, { skipBrowserRedirect: true })
  expect(denied.data?.redirect_url).toContain('error=access_denied')

  const second = await begun('email')
  await client.oauth.getAuthorizationDetails(second)
  const approved = await client.oauth.approveAuthorization(second, { skipBrowserRedirect: true })
  expect(approved.data?.redirect_url).toMatch(/^https:\/\/app\.example\/callback\?code=[\w-]{43}&state=st&iss=/)
  const third = await client.oauth.getAuthorizationDetails(await begun('email'))
  expect(third).toMatchObject({ error: null, data: { redirect_url: expect.stringContaining('code=') } })

  expect(await client.oauth.listGrants()).toMatchObject({
    error: null,
    data: [{ client: { id: clientId, name: 'Reports' }, scopes: ['email'] }],
  })
  expect(await client.oauth.revokeGrant({ clientId })).toMatchObject({ error: null })
  expect((await client.oauth.listGrants()).data).toEqual([])
  expect((await client.oauth.revokeGrant({ clientId })).error).toMatchObject({ code: 'oauth_consent_not_found' })
})
