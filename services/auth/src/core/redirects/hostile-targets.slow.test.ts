import { HOSTILE_SEED, hostileRuns } from '@services/common/testing/http/hostile-run'
import { HOSTILE_TEXTS } from '@services/common/testing/http/hostile-values'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAllowList } from './allow-list-patterns.ts'
import { isPermitted } from './allowed-targets.ts'
import { withFragment, withQuery } from './redirect-url.ts'

const TARGETS = 200 * hostileRuns()

const TEST_WITHIN_MS = 120_000 + TARGETS

const isWeb = ({ protocol }: URL) => protocol === 'https:' || protocol === 'http:'
const isUnder = ({ hostname }: URL, parent: string) => hostname.endsWith(`.${parent}`)
const label = (url: URL, parent: string) => url.hostname.slice(0, -parent.length - 1)

/** Patterns, and the URLs (as a browser parses a target) that each may lead to. */
const PATTERNS: Record<string, (url: URL) => boolean> = {
  'https://app.example.com/**': (url) => url.origin === 'https://app.example.com',
  'https://app.example.com/a/*': (url) => url.origin === 'https://app.example.com' && url.pathname.startsWith('/a/'),
  'https://deep.example/a/**': (url) => url.origin === 'https://deep.example' && url.pathname.startsWith('/a/'),
  'https://*.one.example/**': (url) =>
    url.protocol === 'https:' && isUnder(url, 'one.example') && !label(url, 'one.example').includes('.'),
  'https://**.any.example': (url) => url.protocol === 'https:' && isUnder(url, 'any.example'),
  'http{s,}://pr-*.host.example/**': (url) =>
    isWeb(url) && isUnder(url, 'host.example') && url.hostname.startsWith('pr-'),
  '{http,https}://[a-c].set.example/**': (url) => isWeb(url) && /^[a-c]\.set\.example$/.test(url.hostname),
  'https://[!a].not.example/**': (url) => url.protocol === 'https:' && isUnder(url, 'not.example'),
  'http://localhost:*/**': (url) => url.protocol === 'http:' && url.hostname === 'localhost',
  'http://127.0.0.1:*/native/**': (url) =>
    url.protocol === 'http:' && url.hostname === '127.0.0.1' && url.pathname.startsWith('/native/'),
  '**://wild.example/**': (url) =>
    isWeb(url) ? url.hostname === 'wild.example' : url.href.includes('://wild.example/'),
  '**.free.example/**': (url) => !isWeb(url) && url.href.includes('.free.example/'),
  'myapp://**': ({ protocol }) => protocol === 'myapp:',
  'com.example.app:/oauth': ({ href }) => href === 'com.example.app:/oauth',
}
const SITE = 'https://site.example'
const isAllowed = (url: URL) =>
  (isWeb(url) && url.hostname === 'site.example') || Object.values(PATTERNS).some((allows) => allows(url))

const rules = { siteUrl: SITE, allowList: parseAllowList(Object.keys(PATTERNS).join(',')) }

const GOOD_HOSTS = [
  ...['site.example', 'app.example.com', 'x.one.example', 'a.b.any.example', 'pr-7.host.example', 'b.set.example'],
  ...[
    'x.not.example',
    'localhost',
    'wild.example',
    'login',
    'app.example.com.',
    'APP.example.com',
    'xn--80ak6aa92e.com',
  ],
]
const EVIL_HOSTS = [
  ...[
    'evil.test',
    '192.0.2.1',
    '2130706433',
    '0x7f.1',
    '[::1]',
    '%65vil.test',
    'аpple.example',
    'evil。test',
    'ｅvil.test',
  ],
]
/** Characters that separate parts of an address for some readers only. */
const SIGNS = [
  ...[
    '/',
    '//',
    '\\',
    '\\\\',
    '?',
    '#',
    '@',
    ':',
    ';',
    '%2f',
    '%5c',
    '%40',
    '%3f',
    '%23',
    '%00',
    '\t',
    '\n',
    '\r',
    '\0',
    ' ',
  ],
  ...[
    '.',
    '..',
    '/../',
    '/%2e%2e/',
    '/./',
    '.%2e',
    '&',
    '=',
    '|',
    '^',
    '`',
    '{',
    '}',
    '<',
    '>',
    '"',
    "'",
    '\u00a0',
    '\u2028',
  ],
  ...[
    '／',
    '。',
    '\u200b',
    '\ufeff',
    '\u00ad',
    '﹖',
    '＃',
    '＠',
    '\ud800',
    '*',
    '**',
    '[',
    ']',
    '(',
    ')',
    '+',
    '~',
    '%',
    ',',
  ],
]
const SCHEMES = [
  ...[
    'https',
    'https',
    'https',
    'http',
    'HTTPS',
    'hTtP',
    'myapp',
    'MyApp',
    'com.example.app',
    'ftp',
    'ws',
    'wss',
    'file',
  ],
  ...['javascript', 'JaVaScRiPt', 'data', 'vbscript', 'blob', 'about', 'intent', 'view-source', 'https​', 'ht\ttps', ''],
]

const host = fc.oneof(fc.constantFrom(...GOOD_HOSTS), fc.constantFrom(...EVIL_HOSTS), fc.constant('evil.test'))
const sign = fc.constantFrom(...SIGNS)
const word = fc.constantFrom(
  'a',
  'b.html',
  'x=1',
  ':8443',
  'oauth',
  'a/',
  '.any.example',
  '.one.example/',
  '://wild.example/',
)
const tail = fc.array(fc.oneof(sign, host, word), { maxLength: 5 })
const target = fc.oneof(
  // A good target with some parts too many.
  fc
    .tuple(
      fc.constantFrom(...SCHEMES),
      fc.oneof({ weight: 5, arbitrary: fc.constant('://') }, fc.constantFrom(':', ':/', ':///', ':\\\\', '//', ':/\\')),
      fc.oneof(
        { weight: 3, arbitrary: fc.constant('') },
        fc.tuple(host, sign).map((parts) => parts.join('')),
      ),
      host,
      tail,
    )
    .map((parts) => parts.flat().join('')),
  // A web target whose path only resembles a permitted one.
  fc
    .tuple(host, fc.array(fc.oneof(word, word, sign), { maxLength: 4 }))
    .map(([name, parts]) => `https://${name}${parts.join('')}`),
  // A permitted target with an insertion anywhere.
  fc
    .tuple(
      fc.constantFrom(
        'https://site.example/x',
        'https://app.example.com/a/b',
        'http://127.0.0.1:49152/native/a',
        'https://a.any.example',
        'https://deep.example/a/b/c',
        'myapp://login/cb',
      ),
      fc.nat(40),
      fc.oneof(sign, host, fc.string({ unit: 'binary', maxLength: 3 })),
    )
    .map(([good, at, part]) => good.slice(0, at) + part + good.slice(at)),
  fc.constantFrom(...HOSTILE_TEXTS),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

test(
  'an accepted target leads a browser to a host or scheme of the list, whatever is written around it',
  () => {
    let accepted = 0
    const property = fc.property(target, (text) => {
      if (!isPermitted(text, rules)) return
      accepted++
      // Parsed by itself, as the Location of our answer, and with the parameters that flows add.
      const readings = [text, withFragment(text, { access_token: 'a' }), withQuery(text, { code: 'b' })]
      for (const reading of readings) {
        for (const url of [new URL(reading), new URL(reading, 'https://auth.example/verify')]) {
          if (!isAllowed(url)) throw new Error(`${reading} leads to ${url.href}`)
          if (/^(javascript|data|vbscript|blob|file):$/.test(url.protocol)) throw new Error(`${reading} runs`)
          if (url.username !== '' || url.password !== '') throw new Error(`${reading} has credentials`)
          if (/[\0-\x20\x7f\\]/.test(reading)) throw new Error('it could not be written into a header')
        }
      }
    })
    fc.assert(property, { seed: HOSTILE_SEED, numRuns: TARGETS })
    expect(accepted).toBeGreaterThan(TARGETS / 50)
  },
  TEST_WITHIN_MS,
)
