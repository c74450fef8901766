import { ApiError } from '@services/common/errors'
import { describe, expect, test } from 'vitest'
import { bannedUntil } from './ban-duration.ts'

const now = new Date('2026-01-01T00:00:00Z')
const H = 3_600_000

describe('ban_duration', () => {
  test.each<[string, number]>([
    ['1h', H],
    ['24h', 24 * H],
    ['1h30m', 1.5 * H],
    ['1.5h', 1.5 * H],
    ['.5h', 0.5 * H],
    ['1.h', H],
    ['+2h', 2 * H],
    ['-1h', -H],
    ['1h1h', 2 * H],
    ['7d', 168 * H],
    ['1w1d', 192 * H],
    ['-1.5d', -36 * H],
    ['90s', 90_000],
    ['1500ms', 1_500],
    ['3000000us', 3_000],
    ['3000000µs', 3_000],
    ['3000000μs', 3_000],
    ['5000000ns', 5],
    ['2562047h', 2_562_047 * H],
  ])('%s is a duration', (text, ms) => {
    expect(bannedUntil(text, now)?.getTime()).toBe(now.getTime() + ms)
  })

  test.each(['none', '0', '+0', '-0', '0s', '0h0m', '0.0h'])('%s lifts the ban', (text) => {
    expect(bannedUntil(text, now)).toBeNull()
  })

  test.each([
    '24',
    '1',
    '1.5',
    'h',
    '1y',
    '1D',
    '1 h',
    ' 1h',
    '1h ',
    '1h-1m',
    '--1h',
    '.h',
    '1,5h',
    'None',
    'forever',
    '1H',
  ])('%j is refused', (text) => expect(() => bannedUntil(text, now)).toThrow(ApiError))

  test('more than 64 bits of nanoseconds, or a text without end, is refused', () => {
    for (const text of ['2562048h', '-2562048h', `${'9'.repeat(40)}h`, '1ns'.repeat(50), '1'.repeat(1e6)]) {
      expect(() => bannedUntil(text, now)).toThrow(ApiError)
      expect(() => bannedUntil(text, now)).toThrow('at most 2562047h, which is 292 years')
    }
  })
})
