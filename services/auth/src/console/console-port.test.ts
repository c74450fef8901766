import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { expect, onTestFinished } from 'vitest'
import { test } from '../../test/service.ts'
import { openConsolePort } from './console-port.ts'

test('with a port of its own the console is served there alone, as is all that it needs', async ({ service }) => {
  const port = await findFreePort()
  const { app } = await service.with({
    ...{ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_CONSOLE_ENABLED: 'true', AUTH_CONSOLE_PORT: String(port) },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const close = await openConsolePort(app, { host: '127.0.0.1', port })
  onTestFinished(() => app.close())
  onTestFinished(close)
  const shared = (app.server.address() as AddressInfo).port
  const status = async (at: number, path: string) => (await fetch(`http://127.0.0.1:${at}${path}`)).status
  expect([await status(port, '/console'), await status(port, '/ui/sign-in')]).toEqual([200, 200])
  for (const path of ['/console', '/console/sign-in', '/console/session', '/console/assets/main.js']) {
    expect([path, await status(shared, path)]).toEqual([path, 404])
  }
  expect(await status(shared, '/ui/sign-in')).toBe(200)
  await expect(openConsolePort(app, { host: '127.0.0.1', port })).rejects.toThrow('EADDRINUSE')
})
