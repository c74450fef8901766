// Clients of the OAuth server, by the library.
import { expect } from 'vitest'
import { adminOf, test } from './client.ts'

test('admin.oauth registers, lists, changes and deletes clients, and renews a secret', async ({ open }) => {
  const { oauth } = adminOf(open)
  const made = await oauth.createClient({ client_name: 'Reports', redirect_uris: ['https://reports.example/callback'] })
  expect(made).toMatchObject({
    error: null,
    data: {
      client_name: 'Reports',
      client_type: 'confidential',
      registration_type: 'manual',
      response_types: ['code'],
    },
  })
  const { client_secret, ...client } = made.data as NonNullable<typeof made.data>
  expect(await oauth.getClient(client.client_id)).toEqual({ data: client, error: null })
  await oauth.createClient({ client_name: 'Newer', redirect_uris: ['https://newer.example/callback'] })
  const listed = await oauth.listClients({ page: 2, perPage: 1 })
  expect(listed).toMatchObject({ error: null, data: { clients: [{}], total: 2, nextPage: null, lastPage: 2 } })
  expect((await oauth.listClients()).data.clients).toContainEqual(client)

  // The library's own suite has a logo of http.
  const change = { client_name: 'Monthly', redirect_uris: ['https://monthly.example/callback'] }
  expect(await oauth.updateClient(client.client_id, { logo_uri: 'http://monthly.example/logo' })).toMatchObject({
    ...{ error: null, data: { client_name: 'Reports', logo_uri: 'http://monthly.example/logo' } },
  })
  expect(await oauth.updateClient(client.client_id, change)).toMatchObject({ error: null, data: change })
  const renewed = await oauth.regenerateClientSecret(client.client_id)
  expect(renewed.data?.client_secret).toMatch(/^[\w-]{43}$/)
  expect(renewed.data?.client_secret).not.toBe(client_secret)
  expect(await oauth.deleteClient(client.client_id)).toEqual({ data: null, error: null })
  expect((await oauth.getClient(client.client_id)).error).toMatchObject({ status: 404, code: 'oauth_client_not_found' })
  expect((await oauth.createClient({ client_name: 'x', redirect_uris: [] })).error).toMatchObject({
    ...{ status: 400, code: 'validation_failed', message: 'redirect_uris is required' },
  })
})
