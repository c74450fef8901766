import { programOf } from '@services/common/testing/run/program'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStage } from './service-process.ts'

let stage: Awaited<ReturnType<typeof openStage>>
beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage.end())

test('a provider without its credentials keeps no start, is named in an error, and fails `config check`', async () => {
  const settings = { AUTH_EXTERNAL_GITHUB_ENABLED: 'true', AUTH_EXTERNAL_GITHUB_CLIENT_ID: 'x' }
  const service = await stage.serve({ AUTH_LOG_LEVEL: 'info', ...settings })
  const gap = 'AUTH_EXTERNAL_GITHUB_SECRET is required while AUTH_EXTERNAL_GITHUB_ENABLED is true'
  expect(service.output()).toContain(gap)
  service.child.kill('SIGTERM')
  expect(await service.exit).toEqual([0, null])
  const check = stage.start([programOf('auth', 'cli'), 'config', 'check'], settings)
  expect(await check.exit).toEqual([78, null])
  expect(check.output()).toContain(`- ${gap}`)
  // The log does not repeat it.
  expect(check.output().split(gap)).toHaveLength(2)
})

test.each([
  { settings: {}, isWarned: true },
  { settings: { AUTH_RATE_LIMIT_HEADER: 'X-Real-IP' }, isWarned: false },
])('a start with $settings says that addresses are not limited: $isWarned', async ({ settings, isWarned }) => {
  const service = await stage.serve({ AUTH_LOG_LEVEL: 'info', ...settings })
  expect(service.output().includes('no trusted address header is set (AUTH_RATE_LIMIT_HEADER)')).toBe(isWarned)
  service.child.kill('SIGTERM')
  expect(await service.exit).toEqual([0, null])
})
