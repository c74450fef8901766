import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStage } from './service-process.ts'

let stage: Awaited<ReturnType<typeof openStage>>
beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage.end())

test.each([
  { settings: {}, isWarned: true },
  { settings: { AUTH_RATE_LIMIT_HEADER: 'X-Real-IP' }, isWarned: false },
])(
  'a start with $settings says that addresses are not limited: $isWarned',
  async ({ settings, isWarned }) => {
    const service = await stage.serve({ AUTH_LOG_LEVEL: 'info', ...settings })
    expect(service.output().includes('no trusted address header is set (AUTH_RATE_LIMIT_HEADER)')).toBe(isWarned)
    service.child.kill('SIGTERM')
    expect(await service.exit).toEqual([0, null])
  },
  60_000,
)
