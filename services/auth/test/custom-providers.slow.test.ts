// Providers of the admin API that hang, in real time. All else: custom-providers.test.ts.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { expect, onTestFinished, test } from 'vitest'
import { startTestService } from './service.ts'

test('a description that hangs or drips is refused in time, and one that is known serves on', async () => {
  let how: 'answers' | 'hangs' | 'drips' = 'hangs'
  const drip = (response: ServerResponse) => {
    const timer = setInterval(() => response.write(' '), 50)
    response.on('close', () => clearInterval(timer))
  }
  const server = createFarServer((_request, response) => {
    if (how === 'drips') drip(response)
    if (how === 'answers') response.end(JSON.stringify(documentOf()))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const documentOf = () => ({
    ...{ issuer, authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/t`, jwks_uri: `${issuer}/k` },
  })
  const service = await startTestService({ AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8', AUTH_WORKERS_ENABLED: 'false' })
  onTestFinished(async () => {
    await service.close()
    server.closeAllConnections()
    server.close()
  })
  const provider = { provider_type: 'oidc', identifier: 'custom:slow', name: 'Slow', client_id: 'client', issuer }
  const create = () => service.post('/admin/custom-providers', provider, service.admin)
  for (how of ['hangs', 'drips'] as const) {
    const { status, body } = await create()
    expect([status, body.msg]).toEqual([400, expect.stringContaining('failed: TimeoutError')])
  }
  how = 'answers'
  expect((await create()).status).toBe(201)
  how = 'hangs'
  service.clock.advance({ seconds: 3601 })
  const begin = () => service.get('/authorize?provider=custom:slow')
  const both = await Promise.all([begin(), begin()])
  for (const { headers } of both) expect(String(headers.location)).toContain(`${issuer}/a?`)
})
