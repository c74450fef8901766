import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { expect, onTestFinished, test } from 'vitest'
import { startTestService } from './service.ts'

test('a slow source fails while the client still waits, not after it has disconnected', async () => {
  const server = createFarServer((_request, response) => {
    const drip = setInterval(() => response.write('GIF89a'), 100)
    response.once('close', () => clearInterval(drip))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => server.closeAllConnections())
  onTestFinished(() => void server.close())
  const source = `http://127.0.0.1:${(server.address() as AddressInfo).port}/slow`
  const service = await startTestService({ MEDIA_SYNC_WAIT: '0', MEDIA_WORKERS_ENABLED: 'false' })
  const { status, body } = await service.importFrom({ source })
  expect([status, body.error.code, body.error.details]).toEqual([424, 'source_fetch_failed', { upstream: 'timeout' }])
  expect(await service.listFiles()).toEqual([])
  await service.close()
})
