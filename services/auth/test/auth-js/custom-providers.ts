// Providers of the admin API, by the library.
import { expect, onTestFinished } from 'vitest'
import { startOpenIdProvider } from '../openid-provider.ts'
import { adminOf, clientOf, test } from './client.ts'

test('customProviders: createProvider, listProviders, getProvider, updateProvider, deleteProvider', async ({
  open,
}) => {
  const far = await startOpenIdProvider({}, `${open.url}/callback`)
  onTestFinished(() => far.close())
  const { customProviders } = adminOf(open)
  const identifier = 'custom:by-library'
  const created = await customProviders.createProvider({
    ...{ provider_type: 'oidc', identifier, name: 'Library', issuer: far.issuer, scopes: ['email'] },
    ...{ client_id: 'our-client', client_secret: 'a-secret-of-the-client' },
  })
  expect(created).toMatchObject({ error: null, data: { identifier, discovery_document: { issuer: far.issuer } } })
  expect(await customProviders.getProvider(identifier)).toEqual(created)
  expect(await customProviders.listProviders({ type: 'oidc' })).toEqual({
    // A list is without the descriptions.
    data: { providers: [{ ...created.data, discovery_document: undefined }] },
    error: null,
  })
  const changed = await customProviders.updateProvider(identifier, { name: 'Changed', email_optional: true })
  expect(changed.data).toMatchObject({ name: 'Changed', email_optional: true, client_id: 'our-client' })

  const { client } = clientOf(open)
  const id_token = await far.idToken({ sub: 'by-library', exp: 4e9 })
  const signedIn = await client.signInWithIdToken({ provider: identifier, token: id_token })
  expect([signedIn.error, signedIn.data.user?.app_metadata.provider]).toEqual([null, identifier])
  const { data } = await clientOf(open).client.signInWithOAuth({
    provider: identifier as never,
    options: { skipBrowserRedirect: true },
  })
  const begun = await fetch(data.url ?? '', { redirect: 'manual' })
  far.next({ sub: 'by-library' })
  expect((await far.visit(String(begun.headers.get('location')))).pathname).toBe('/callback')

  expect(await customProviders.deleteProvider(identifier)).toEqual({ data: null, error: null })
  expect((await customProviders.getProvider(identifier)).error).toMatchObject({
    ...{ status: 404, code: 'custom_provider_not_found' },
  })
  const bad = await customProviders.createProvider({ provider_type: 'oidc', identifier: 'library' } as never)
  expect(bad.error).toMatchObject({ status: 400, code: 'validation_failed' })
})
