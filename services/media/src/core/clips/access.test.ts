import { describe, expect, test } from 'vitest'
import { type AccessChanges, applyAccess, cleanAccess, cleanNewAccess, type RawAccess } from './access.ts'

const now = new Date('2026-06-01T12:00:00Z')
const owner = { now, hasToken: true, longestSeconds: 5 * 365.25 * 86_400 }
const anonymous = { now, hasToken: false, longestSeconds: 30 * 86_400 }

test.each<[RawAccess, AccessChanges]>([
  [{}, {}],
  [{ visibility: '', expires_in: ' ', sliding: '' }, {}],
  [{ visibility: 'Unlisted' }, { visibility: 'unlisted' }],
  [{ expires_in: '90m' }, { lifetime: 5400 }],
  [
    { expires_in: '7d', sliding: true },
    { lifetime: 604_800, sliding: true },
  ],
  [{ expires_in: '1h30m' }, { lifetime: 5400 }],
  [{ expires_in: '1w1d' }, { lifetime: 691_200 }],
  [{ expires_in: 3600 }, { lifetime: 3600 }],
  [{ expires_in: '1826d' }, { lifetime: 157_766_400 }],
  [{ expires_in: 'never' }, { lifetime: null }],
  [{ expires_at: '2026-06-02T14:00:00+02:00' }, { lifetime: '2026-06-02T12:00:00.000Z' }],
])('%o is read', (raw, changes) => {
  expect(cleanAccess(raw, owner)).toEqual(changes)
})

describe('refused, naming the field:', () => {
  test.each<[string, RawAccess]>([
    ['visibility', { visibility: 'secret' }],
    ['expires_in', { expires_in: 'soon' }],
    ['expires_in', { expires_in: '59s' }],
    ['expires_in', { expires_in: '1827d' }],
    ['expires_in', { expires_in: '99999d' }],
    ['expires_in', { expires_in: '-1' }],
    ['expires_at', { expires_at: '2026-06-01T12:00:30Z' }],
    ['expires_at', { expires_at: '2026-05-01T12:00:00Z' }],
    ['expires_at', { expires_at: '2032-05-01T12:00:00Z' }],
    ['expires_at', { expires_at: '2026-06-02' }],
    ['expires_at', { expires_at: '2026-06-02T12:00:00' }],
    ['expires_at', { expires_at: '2026-13-45T99:00:00Z' }],
    ['expires_at', { expires_in: '7d', expires_at: '2026-06-02T12:00:00Z' }],
    ['sliding', { sliding: 'perhaps' }],
    ['sliding', { sliding: true }],
    ['sliding', { sliding: true, expires_in: 'never' }],
  ])('%s in %o', (param, raw) => {
    expect(() => cleanNewAccess(raw, owner)).toThrow(
      expect.objectContaining({ code: 'invalid_field', details: { param } }),
    )
  })

  test.each<[string, RawAccess]>([
    ['visibility', { visibility: 'private' }],
    ['expires_in', { expires_in: 'never' }],
    ['expires_in', { expires_in: '31d' }],
    ['sliding', { sliding: true, expires_in: '1d' }],
  ])('without a token %s in %o', (param, raw) => {
    expect(() => cleanNewAccess(raw, anonymous)).toThrow(
      expect.objectContaining({ code: 'invalid_field', details: { param } }),
    )
  })
})

describe('a change', () => {
  const current = {
    visibility: 'unlisted',
    expiresAt: new Date('2026-06-02T12:00:00Z'),
    slidingSeconds: 604_800,
    createdAt: new Date('2026-05-26T12:00:00Z'),
  } as const

  test.each<[string, AccessChanges, object]>([
    ['of nothing keeps all', {}, current],
    ['of visibility keeps the lifetime', { visibility: 'public' }, { ...current, visibility: 'public' }],
    ['of the lifetime changes the span of a visit, too', { lifetime: 3600 }, { slidingSeconds: 3600 }],
    ['to sliding keeps the span of a clip that slides', { sliding: true }, current],
    ['to not sliding keeps the end', { sliding: false }, { ...current, slidingSeconds: null }],
    ['to no end ends sliding', { lifetime: null }, { expiresAt: null, slidingSeconds: null }],
  ])('%s', (_, changes, expected) => {
    const { createdAt, ...members } = expected as typeof current
    expect(applyAccess(current, changes, now)).toMatchObject(members)
  })

  test('to sliding takes the whole lifetime as the span', () => {
    const fixed = { ...current, slidingSeconds: null }
    expect(applyAccess(fixed, { sliding: true }, now).slidingSeconds).toBe(604_800)
  })

  test('to sliding is refused for a clip without an end', () => {
    const endless = { ...current, expiresAt: null, slidingSeconds: null }
    expect(() => applyAccess(endless, { sliding: true }, now)).toThrow(/sliding needs/)
  })
})
