import { expect, test } from 'vitest'
import type { Attribution } from '../../db/tables.ts'
import { type Credit, creditOf } from './credit.ts'

test.each<[Attribution, Credit]>([
  [
    { site: 'twitter', user: 'jack' },
    { label: '@jack on Twitter', url: 'https://x.com/jack' },
  ],
  [
    { site: 'reddit', user: 'spez' },
    { label: 'u/spez on Reddit', url: 'https://www.reddit.com/user/spez' },
  ],
  [
    { site: 'instagram', user: 'nasa' },
    { label: '@nasa on Instagram', url: 'https://www.instagram.com/nasa/' },
  ],
  [
    { site: 'twitter', user: 'a/../b?c#d' },
    { label: '@a/../b?c#d on Twitter', url: 'https://x.com/a%2F..%2Fb%3Fc%23d' },
  ],
  [
    { site: 'twitter', user: 'half \ud800' },
    { label: '@half \ud800 on Twitter', url: 'https://x.com/half%20%EF%BF%BD' },
  ],
  [
    { site: 'twitter', user: 'jack', url: 'https://evil.example/' },
    { label: '@jack on Twitter', url: 'https://x.com/jack' },
  ],
  [{ site: 'reddit' }, { label: 'Reddit' }],
  [
    { site: 'reddit', url: 'https://redd.it/1' },
    { label: 'Reddit', url: 'https://redd.it/1' },
  ],
  [{ site: 'reddit', url: 'javascript:alert(1)' }, { label: 'Reddit' }],
  [{ site: 'https://www.example.org/me' }, { label: 'example.org', url: 'https://www.example.org/me' }],
  [
    { site: 'https://example.org', url: 'https://example.org/clip' },
    { label: 'example.org', url: 'https://example.org/clip' },
  ],
  [
    { site: 'https://bank.example', url: 'https://evil.example/' },
    { label: 'evil.example', url: 'https://evil.example/' },
  ],
  [
    { site: 'https://example.org', user: 'Ann' },
    { label: 'Ann on example.org', url: 'https://example.org/' },
  ],
  [{ site: 'javascript:alert(1)' }, { label: 'javascript:alert(1)' }],
  [{ site: 'data:text/html,x', user: 'Ann' }, { label: 'Ann on data:text/html,x' }],
  [
    { site: 'https://example.org', url: 'javascript:alert(1)' },
    { label: 'example.org', url: 'https://example.org/' },
  ],
  [{ site: 'toString', user: 'x' }, { label: 'x on toString' }],
])('%o', (attribution, expected) => {
  expect(creditOf(attribution)).toEqual(expected)
})
