import { expect, test } from 'vitest'
import { nearest } from './nearest-name.ts'

const known = ['SITE_URL', 'SMTP_HOST', 'SMTP_PASS', 'MAILER_LOCALES', 'RATE_LIMIT_HEADER', 'TRACING_ENABLED', 'PORT']

test.each([
  ['SITEURL', 'SITE_URL'],
  ['SMTP_HSOT', 'SMTP_HOST'],
  ['SMTP_PASSWORD', 'SMTP_PASS'],
  ['TRACNIG_ENABLED', 'TRACING_ENABLED'],
])('%s is a slip for %s', (name, meant) => {
  expect(nearest(name, known)).toBe(meant)
})

test.each(['WEBHOOK_URL', 'SAML_ENABLED', 'RATE_LIMIT_EMAIL', 'MAILER_URLPATHS', 'FOO', ''])(
  '%j is no slip for any of them',
  (name) => {
    expect(nearest(name, known)).toBeUndefined()
  },
)
