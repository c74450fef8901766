// Limits of a description in time and size. Its refusals: flows/admin/custom-providers/custom-providers.test.ts.
import { expect, test } from 'vitest'
import { checkAddresses } from './check-address.ts'
import { readDiscovery } from './discovery.ts'

const issuer = 'https://login.example.com'
const named = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'].map((name) => [name, `${issuer}/${name}`])
const egress = {
  check: () => new Promise<never>(() => {}),
  fetch: async () => Response.json({ issuer, ...Object.fromEntries(named) }),
  close: async () => {},
}

test('a name server that never answers ends with the limit of the whole step', async () => {
  await expect(checkAddresses(egress, [['issuer', issuer]], 1)).rejects.toThrow('issuer: Unable to resolve hostname')
  await expect(readDiscovery(egress, { address: issuer, issuer, withinMs: 50 })).rejects.toThrow(
    'authorization_endpoint: Unable to resolve hostname',
  )
})
