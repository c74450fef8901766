import { expect, test } from 'vitest'
import type { Logger } from './logger.ts'
import { telemetryLog } from './telemetry-log.ts'

function openLog() {
  const lines: { level: string; fields: object; message: string }[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
  let ms = 0
  const sdk = telemetryLog({ info: at('info'), warn: at('warn') } as unknown as Logger, () => ms)
  return { sdk, lines, wait: (more: number) => (ms += more) }
}

test('failed exports are one warning a minute, with the number of unreported ones', () => {
  const { sdk, lines, wait } = openLog()
  const failure = JSON.stringify({ name: 'Error', code: 'ECONNREFUSED', message: 'connect', stack: 'Error\n at x' })
  for (let i = 0; i < 10; i++) {
    sdk.error(failure)
    wait(5_000)
  }
  expect(lines).toHaveLength(1)
  wait(10_000)
  sdk.warn('later')
  const message = 'telemetry is not exported as configured'
  expect(lines).toEqual([
    { level: 'warn', fields: { reason: 'Error ECONNREFUSED connect', unreported: 0 }, message },
    { level: 'warn', fields: { reason: 'later', unreported: 9 }, message },
  ])
})

test('a detail is logged without the batches that the SDK attaches', () => {
  const { sdk, lines } = openLog()
  sdk.debug('@opentelemetry/exporter', 'items to be sent', [{ attributes: { secret: 'a' } }])
  expect(lines.map(({ fields }) => fields)).toEqual([{ detail: '@opentelemetry/exporter items to be sent' }])
})
