// GET /settings: the values in force with their sources, and never a secret.
import { expect, test } from 'vitest'
import { startTestService } from '../../../test/service.ts'
import { variables } from '../../config.ts'

/** Parts of names whose values let something in. */
const SOUNDS_SECRET = /SECRET|(?<!PER)_TOKEN$|_KEY(_ID)?$|CLIENT_ID$|(^|_)DATABASE_.*URLS?$/

test('a variable whose name sounds secret is one', () => {
  const shown = Object.entries(variables).flatMap(([name, { secret }]) =>
    SOUNDS_SECRET.test(name) && !secret ? [name] : [],
  )
  // An application shows it anyone.
  expect(shown).toEqual(['REDDIT_CLIENT_ID'])
})

/** Acceptable values of the secrets; others take any text. */
const VALUES: Record<string, string> = {
  SCAN_SECRET: `whsec_${Buffer.from('canary'.repeat(6)).toString('base64')}`,
}
/** The database of the test; its replicas and direct addresses are those of no other server. */
const ELSEWHERE = /DATABASE/

test('no secret is in the answer, whichever is set, and each says where it comes from', async () => {
  const secrets = Object.entries(variables).flatMap(([name, { secret }]) =>
    secret && !ELSEWHERE.test(name) ? [[name, VALUES[name] ?? `canary-of-${name}-long-enough`]] : [],
  ) as [string, string][]
  expect(secrets.length).toBeGreaterThan(7)
  const service = await startTestService({
    ...Object.fromEntries(secrets.map(([name, value]) => [`MEDIA_${name}`, value])),
    MEDIA_SCAN_URL: 'https://8.8.8.8/scan?key=canary-of-a-query',
    SITE_NAME: 'Ours',
    MEDIA_MAX_SDIE: '1',
  })
  const { token, id } = await service.newToken({ scopes: ['admin'] })
  const { body, text } = await service.get('/settings', { token })
  const { settings, warnings, review } = body.success
  for (const [, value] of secrets) expect(text).not.toContain(value)
  expect(text).not.toMatch(/canary|postgres(ql)?:\/\//)
  const setting = (name: string) => settings.find((each: { name: string }) => each.name === name)
  expect(settings.map(({ name }: { name: string }) => name)).toEqual(
    Object.keys(variables).map((name) => `MEDIA_${name}`),
  )
  for (const [name] of secrets) {
    expect(setting(`MEDIA_${name}`)).toMatchObject({ value: null, secret: true, source: 'environment' })
  }
  expect(setting('MEDIA_DATABASE_URL')).toMatchObject({ value: null, secret: true, source: 'environment' })
  expect(setting('MEDIA_SITE_NAME')).toMatchObject({ value: 'Ours', source: 'environment', given_as: 'SITE_NAME' })
  expect(setting('MEDIA_PORT')).toMatchObject({ value: '8082', source: 'default', default: '8082' })
  expect(setting('MEDIA_QUOTA_BYTES')).toMatchObject({ value: null, source: 'unset' })
  expect(setting('MEDIA_SCAN_URL').value).toBe('https://8.8.8.8/scan?…')
  expect(warnings).toEqual(
    expect.arrayContaining([
      expect.stringContaining('MEDIA_MAX_SDIE is not a known variable'),
      'imports may reach private networks',
    ]),
  )
  expect(review.join()).toMatch(/MEDIA_BOOTSTRAP_TOKEN is set.*MEDIA_RATE_LIMIT_HEADER is unset/)
  expect(review.join()).not.toContain('MEDIA_ENCRYPTION_KEY')
  expect(id).toBeDefined()
  const usual = await service.get('/settings', { token: service.token })
  expect([usual.status, usual.body.error.code]).toEqual([403, 'insufficient_scope'])
  await service.close()
})
