import { expect, test } from 'vitest'
import { test as withService } from '../../../test/service.ts'
import { readConfig } from '../../config.ts'
import { parseAllowList } from './allow-list-patterns.ts'
import { isPermitted } from './allowed-targets.ts'

const rules = (allowList: string) => ({ siteUrl: 'https://site.example', allowList: parseAllowList(allowList) })

test.for<[string, boolean]>([
  ['https://site.example', true],
  ['https://site.example/deep/page?x=1#part', true],
  ['https://site.example/#/route', true],
  ['https://site.example/#access_token=mine&refresh_token=mine', false],
  ['https://site.example/#/route#access_token=mine', false],
  ['https://site.example/?a=b#c', true],
  ['http://site.example/', true],
  ['https://site.example:8443/', true],
  ['https://SITE.example/', true],
  ['ftp://site.example/', false],
  ['javascript://site.example/%0aalert(1)', false],
  ['https://site.example.evil.test/', false],
  ['https://evil.test/site.example', false],
  ['https://user@site.example/', false],
  ['https://site.example@evil.test/', false],
  ['https://evil.test\\@site.example/', false],
  ['https:\\\\site.example/', false],
  ['//site.example/', false],
  ['/relative', false],
  ['https://site.example/\n', false],
  ['https://site.\texample/', false],
  ['', false],
  ['https://site.example:443/', true],
  ['http://site.example:80/', true],
  ['https://site.example./', false],
  ['https://www.site.example/', false],
  ['https://xn--site-example-9za.test/', false],
  ['https://sité.example/', false],
  ['https://user:secret@site.example/', false],
  ['https://@site.example/', false],
  ['https://site.example%00.evil.test/', false],
  ['https://site.example%2f@evil.test/', false],
  ['https://site.example;.evil.test/', false],
  ['https://evil.test?https://site.example/', false],
  ['https://evil.test#https://site.example/', false],
  ['https://evil.test/\\site.example', false],
  ['https:\\/site.example/', false],
  ['https:/site.example/', false],
  ['https:site.example/', false],
  ['https:///site.example/', false],
  ['///site.example/', false],
  ['site.example', false],
  [' https://site.example/', false],
  ['https://site.example/ ', false],
  ['https://site.example/\r\nset-cookie: a=b', false],
  ['https://site.example/\0', false],
  ['https://site.example/\x7f', false],
  ['\tjavascript:alert(1)', false],
  ['java\nscript:alert(1)', false],
  ['JaVaScRiPt://site.example/%0aalert(1)', false],
  ['javascript:alert(1)//https://site.example', false],
  ['javascript://127.0.0.1/%0aalert(1)', false],
  ['data://site.example/text/html,x', false],
  ['view-source:https://site.example/', false],
  ['blob:https://site.example/1', false],
  ['http://127.0.0.1/', false],
  ['http://localhost/', false],
  [`https://site.example/${'x'.repeat(3000)}`, false],
])('with an empty list %j is permitted: %s', ([url, expected]) => {
  expect(isPermitted(url, rules(''))).toBe(expected)
})

test.for<[string, string, boolean]>([
  ['https://*.foo.example.com', 'https://a.foo.example.com', true],
  ['https://*.foo.example.com', 'https://a.b.foo.example.com', false],
  ['https://*.foo.example.com', 'https://foo.example.com', false],
  ['https://foo.example.com/*', 'https://foo.example.com/', true],
  ['https://foo.example.com/*', 'https://foo.example.com', false],
  ['https://foo.example.com/*', 'https://foo.example.com/page1?x=1', true],
  ['https://foo.example.com/*', 'https://foo.example.com/page1/sub', false],
  ['https://foo.example.com/*', 'https://foo.example.com/page.html', false],
  ['https://foo.example.com/**', 'https://foo.example.com/a/b.html?x=/y', true],
  ['https://foo.example.com/?', 'https://foo.example.com/a', true],
  ['https://foo.example.com/?', 'https://foo.example.com/ab', false],
  ['https://pr-*.host.example/**', 'https://pr-12.host.example/x', true],
  ['https://pr-*.host.example/**', 'https://pr-1.2.host.example/x', false],
  ['https://*.foo.example.com', 'https://evil?.foo.example.com', false],
  ['https://*.foo.example.com', 'https://evil:1.foo.example.com', false],
  ['https://{a,b}.example.com/**', 'https://b.example.com/x', true],
  ['https://{a,b}.example.com/**', 'https://c.example.com/x', false],
  ['https://foo.example.com/[a-c]', 'https://foo.example.com/b', true],
  ['https://foo.example.com/[!a-c]', 'https://foo.example.com/b', false],
  ['myapp://**', 'myapp://login/callback?x=1', true],
  ['myapp://**', 'myapp:/callback', false],
  ['com.my.app:/oauth', 'com.my.app:/oauth', true],
  ['com.my.app:/oauth', 'com.my.app:/oauth?x=1', false],
  ['https://**.example.com', 'https://a.b.example.com', true],
  ['https://**.example.com', 'https://evil.test/.example.com', false],
  ['https://**.example.com', 'https://evil.test?.example.com', false],
  ['https://**.example.com', 'https://evil.test#.example.com', false],
  ['https://**', 'https://2130706433/', false],
  ['https://**', 'https://0177.0.0.1/', false],
  ['https://**', 'https://192.0.2.1/', false],
  ['https://192.0.2.1/', 'https://192.0.2.1/', true],
  ['https://**', 'https://xn--80ak6aa92e.com/', true],
  ['https://**', 'https://аpple.example/', false],
  ['**', 'javascript:alert(1)', false],
  ['**', 'data:text/html,x', false],
  ['https://foo.example.com/**', 'https://foo.example.com/a#fragment', true],
  ['https://*.foo.example.com', 'https://a.foo.example.com/', false],
  ['https://foo.example.com/*', 'https://foo.example.com/page1', true],
  ['https://foo.example.com/*', 'https://foo.example.com/p?v=1.2', false],
  ['https://foo.example.com/?', 'https://foo.example.com/', false],
  ['https://foo.example.com/?', 'https://foo.example.com/?', true],
  ['https://foo.example.com/\\?x=1', 'https://foo.example.com/?x=1', true],
  ['https://foo.example.com/\\?x=1', 'https://foo.example.com/ax=1', false],
  ['https://foo.example.com/[!a-c]', 'https://foo.example.com/d', true],
  ['https://foo.example.com/\\*', 'https://foo.example.com/*', true],
  ['https://foo.example.com/\\*', 'https://foo.example.com/x', false],
  ['https://foo.example.com/*', 'https://FOO.example.com/x', false],
  ['https://foo.example.com/**', 'http://foo.example.com/x', false],
  ['https://foo.example.com/**', 'https://foo.example.com:443/x', false],
  ['https://foo.example.com:*/**', 'https://foo.example.com:8443/x', true],
  ['https://foo.example.com:*/**', 'https://foo.example.com:1@evil.test/x', false],
  ['https://foo.example.com/**', 'https://fooxexample.com/x', false],
  ['https://foo.example.com/**', 'https://foo.example.com.evil.test/x', false],
  ['https://foo.example.com/**', 'https://foo.example.com@evil.test/x', false],
  ['https://foo.example.com/**', 'https://user@foo.example.com/x', false],
  ['https://foo.example.com/**', 'https://foo.example.com\\@evil.test/x', false],
  ['https://foo.example.com/app/**', 'https://foo.example.com/app/../admin', false],
  ['https://foo.example.com/app/**', 'https://foo.example.com/app/%2E%2e/admin', false],
  ['https://foo.example.com/app/**', 'https://foo.example.com/app/.%2e', false],
  ['https://foo.example.com/app/**', 'https://foo.example.com/app/x..y?z=/../a', true],
  ['http://localhost:3000', 'http://localhost:3000/', false],
  ['http://localhost:3000', 'http://localhost:3000', true],
  ['https://**.example.com', 'https://evil.test%2f.example.com', false],
  ['https://**.example.com', 'https://evil.test;.example.com', false],
  ['https://**.example.com', 'https://a.example.com.', false],
  ['http://**:12345/*', 'http://[::1]:12345/x', false],
  ['http://**:12345/*', 'http://127.0.0.1:12345/x', false],
  ['http://127.0.0.1:12345/x', 'http://127.0.0.1:12345/x', true],
  ['http://127.0.0.1:8400/**', 'http://127.0.0.1:8400/cli', true],
  ['http://127.0.0.1:*/**', 'http://127.0.0.1:49152/cb', true],
  ['http://127.0.0.1:8400/cli', 'http://127.0.0.1:49152/cli?sb_flow_id=1', true],
  ['http://127.0.0.1/cli', 'http://127.0.0.1:49152/cli', true],
  ['http://127.0.0.1', 'http://127.0.0.1:49152/', true],
  ['http://127.0.0.1:*', 'http://127.0.0.1:49152', true],
  ['http://127.0.0.1:**', 'http://127.0.0.1:49152/any/path', true],
  ['http://{127.0.0.1,[::1]}:*/cb', 'http://[::1]:49152/cb', true],
  ['http://[::1]:*/**', 'http://[::1]:49152/cb', true],
  ['http://[::1]:*/**', 'http://127.0.0.1:49152/cb', false],
  ['http://127.0.0.1:*/**', 'http://[::1]:49152/cb', false],
  ['http://127.0.0.1:*/**', 'http://127.0.0.2:49152/cb', false],
  ['http://127.0.0.1:*/**', 'http://127.1:49152/cb', false],
  ['http://127.0.0.1:*/**', 'http://2130706433:49152/cb', false],
  ['http://127.0.0.1:*/**', 'http://127.0.0.1.evil.test/cb', false],
  ['http://127.0.0.1:*/**', 'http://127.0.0.1:1@evil.test/cb', false],
  ['http://127.0.0.1:*/**', 'https://127.0.0.1:49152/cb', false],
  ['http://127.0.0.1:*/**', 'http://localhost:49152/cb', false],
  ['http://127.0.0.1:*/a/**', 'http://127.0.0.1:49152/a/../b', false],
  ['http://127.0.0.1:*/a', 'http://127.0.0.1:49152/b?/a', false],
  ['http://127.0.0.1:8400/cli', 'http://127.0.0.1:49152/cli#x=y', false],
  ['https://*/**', 'https://127.0.0.1/x', false],
  ['**', 'http://127.0.0.1/', false],
  ['http://[::1]:12345/x', 'http://[::1]:12345/x', true],
  ['**', 'http://0x7f000001/', false],
  ['**', 'http://0x7f.0.0.1/', false],
  ['**', 'http://017700000001/', false],
  ['**', 'http://127.1/', false],
  ['**', 'http://[::ffff:127.0.0.1]/', false],
  ['**', 'http://%31%32%37.0.0.1/', false],
  ['**', 'https://a_b.example/', false],
  ['**', 'javascript://localhost/%0aalert(1)', false],
  ['**', 'JAVASCRIPT:alert(1)', false],
  ['**', 'vbscript:x', false],
  ['**', 'file:///etc/passwd', false],
  ['**', 'https:evil.test', false],
  ['**', 'https:/evil.test', false],
  ['**', '//evil.test', false],
  ['myapp://**', 'myapp://user@login/callback', false],
  ['myapp://**', 'myapp://login\\callback', false],
  ['myapp://**', 'otherapp://login', false],
  ['http{s,}://**.example.com/**', 'https://evil.test/x.example.com/', false],
  ['http{s,}://**.example.com/**', 'https://evil.test?x.example.com/', false],
  ['http{s,}://**.example.com/**', 'https://a.b.example.com/x', true],
  ['http{s,}://**.example.com/**', 'http://a.example.com/x', true],
  ['{http,https}://**.example.com', 'https://evil.test/.example.com', false],
  ['{http,https}://**.example.com', 'https://evil.test#.example.com', false],
  ['{http,https}://**.example.com', 'https://a.b.example.com', true],
  ['{http,https}://*.example.com/**', 'https://evil?.example.com/', false],
  ['{http,https}://*.example.com/**', 'https://evil:1.example.com/', false],
  ['{http,https}://*.example.com/**', 'http://a.example.com/x/y', true],
  ['http*://**.example.com/**', 'https://evil.test/.example.com/', false],
  ['http*://**.example.com/**', 'https://a.example.com/', true],
  ['http?://**.example.com', 'https://evil.test/.example.com', false],
  ['http[s]://**.example.com', 'https://evil.test/.example.com', false],
  ['http[!x]://**.example.com', 'https://evil.test/.example.com', false],
  ['http\\s://**.example.com', 'https://evil.test/.example.com', false],
  ['https\\://**.example.com', 'https://evil.test/.example.com', false],
  ['https:\\/\\/**.example.com', 'https://evil.test/.example.com', false],
  ['https:\\/\\/**.example.com', 'https://a.example.com', true],
  ['HTTPS://**.example.com', 'HTTPS://evil.test/.example.com', false],
  ['**://**.example.com', 'https://evil.test/.example.com', false],
  ['**://good.example/**', 'https://evil.test/http://good.example/', false],
  ['**://good.example/**', 'https://evil.test?http://good.example/', false],
  ['**://good.example/**', 'https://good.example/x', true],
  ['*://good.example/**', 'https://good.example/x', true],
  ['*://**.example.com', 'https://evil.test/.example.com', false],
  ['https:/[/]**.example.com', 'https://evil.test/.example.com', false],
  ['https[:]//**.example.com', 'https://evil.test/.example.com', false],
  ['https:*//**.example.com', 'https://evil.test/.example.com', false],
  ['https:**.example.com', 'https://evil.test/.example.com', false],
  ['**.example.com', 'https://evil.test/.example.com', false],
  ['**.example.com/**', 'https://evil.test/.example.com/', false],
  ['**.example.com/**', 'HTTPS://evil.test/.example.com/', false],
  ['**example.com/**', 'https://evilexample.com/', false],
  ['https://a[!x]b.example.com/', 'https://a/b.example.com/', false],
  ['https://a[!x]b.example.com/', 'https://a?b.example.com/', false],
  ['https://a[!x]b.example.com/', 'https://a#b.example.com/', false],
  ['https://a[!x]b.example.com/', 'https://a@b.example.com/', false],
  ['https://a[!x]b.example.com/', 'https://a:b.example.com/', false],
  ['https://a[!x]b.example.com/', 'https://acb.example.com/', true],
  ['https://a[!x]b.example.com/', 'https://axb.example.com/', false],
  ['https://a[ -~]b.example.com/', 'https://a/b.example.com/', false],
  ['https://a[/?]b.example.com/', 'https://a/b.example.com/', false],
  ['https://a[ -~]b.example.com/', 'https://a-b.example.com/', true],
  ['https://foo.example.com/[!x]', 'https://foo.example.com//', true],
  ['{https://a.example,https://b.example}/**', 'https://b.example/x', true],
  ['{https://a.example,https://b.example}/**', 'https://c.example/x', false],
  ['{https://*.a.example,https://**.b.example}', 'https://evil.test/.b.example', false],
  ['{https://*.a.example,https://**.b.example}', 'https://evil?.a.example', false],
  ['{https://*.a.example,https://**.b.example}', 'https://x.y.b.example', true],
  ['{https:/,x}/**.example.com', 'https://evil.test/.example.com', false],
  ['http{s:,:}//**.example.com', 'https://evil.test/.example.com', false],
  ['https:{/,x}/**.example.com/**', 'https://evil.test/.example.com/', false],
  ['https{://x.test,}://**.example.com', 'https://evil.test/.example.com', false],
  ['{myapp,https}://**.example.com', 'https://evil.test/.example.com', false],
  ['https://{**,a}.example.com', 'https://evil.test/.example.com', false],
  ['https://{a.example.com,b.example.com/**}', 'https://b.example.com/x', true],
  ['https://{a/,b.}example.com/**', 'https://a/example.com/', true],
  ['https://foo.example.com/\\{x\\}', 'https://foo.example.com/{x}', true],
  ['https://foo.example.com/{\\,,b}', 'https://foo.example.com/,', true],
  ['https://foo.example.com\\?x=**', 'https://foo.example.com?x=a/b', true],
  ['https://**.example.com\\?x=**', 'https://evil.test/.example.com?x=1', false],
  ['**', 'https://anywhere.test/x', true],
  ['https**', 'https://anywhere.test/x', true],
  ['https://**', 'https://anywhere.test/x?y=/z', true],
  ['{https,myapp}://**', 'https://anywhere.test/x', true],
  ['myapp://**/callback', 'myapp://a/b/callback', true],
  ['*app://**', 'myapp://login/x', true],
  ['com.my.app:/**', 'com.my.app:/oauth/x', true],
  ['**:/oauth', 'com.my.app:/oauth', true],
])('list %j: %j is permitted: %s', ([pattern, url, expected]) => {
  expect(isPermitted(url, rules(pattern))).toBe(expected)
})

test.for<[string, string]>([
  ['https://{a.example/**', 'unbalanced braces'],
  ['https://a}.example/**', 'unbalanced braces'],
  ['https://{a,{b,c}}.hunter2/**', 'unbalanced braces'],
  ['https://[z-a].hunter2/**', 'a range'],
  ['https://a.hunter2/[9-0]', 'a range'],
  ['http[z-a]://hunter2/**', 'a range'],
  ['{a,b}'.repeat(40), 'alternatives'],
])('the pattern %j is reported as a problem without being quoted', ([pattern, problem]) => {
  expect(() => parseAllowList(pattern)).toThrow(problem)
  expect(() => parseAllowList(pattern)).not.toThrow(/hunter2|invalid regular expression/i)
})

test.for<[string, string, boolean]>([
  ['http://localhost:3000', 'http://localhost:8080/callback', true],
  ['http://localhost:3000', 'http://127.0.0.1:3000/', false],
  ['http://localhost:3000', 'javascript://localhost:3000/%0aalert(1)', false],
  ['http://127.0.0.1:3000', 'http://127.0.0.1:5173/', true],
  ['https://site.example/app', 'https://site.example/elsewhere', true],
  ['https://SITE.example', 'https://site.example/', true],
  ['https://sité.example', 'https://xn--sit-dma.example/', true],
  ['myapp://home', 'http://home/', false],
  ['myapp://home', 'https://home/x', false],
])('for the site %j the target %j is permitted: %s', ([siteUrl, url, expected]) => {
  expect(isPermitted(url, { siteUrl, allowList: [] })).toBe(expected)
})

test.for<[string, boolean]>([
  ['http://127.0.0.1:*/**', true],
  ['http://[::1]:8080/cb?x=1', true],
  ['http://192.168.1.5/x', true],
  ['https://*.preview.example.com/**', true],
  ['{https,myapp}://**', true],
  ['**.example.com', true],
  ['*app://**', true],
  ['http[s]://**.example.com', true],
  ['https://sité.example/x', true],
  ['http://192.168.1.5:*/x', false],
  ['https://sité.example/**', false],
  ['https://app.example/#/x', false],
  ['https://user@app.example/**', false],
  ['https://app.example/a/../b', false],
  ['app.example.com/**', false],
  ['javascript:**', false],
])(
  'the pattern %j can match an address: %s; start and config check name one that cannot by its position',
  ([pattern, can]) => {
    const { warnings } = readConfig({
      AUTH_SITE_URL: 'https://site.example',
      AUTH_API_EXTERNAL_URL: 'https://auth.example',
      AUTH_DATABASE_URL: 'postgres://localhost/auth',
      AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
      AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
      AUTH_URI_ALLOW_LIST: `https://fine.example/**,${pattern}`,
    })
    const reported = warnings.filter((warning) => warning.startsWith('AUTH_URI_ALLOW_LIST'))
    if (can) expect(reported).toEqual([])
    else expect(reported).toEqual([expect.stringMatching(/^AUTH_URI_ALLOW_LIST: pattern 2 can never match: /)])
  },
)

/** Findings of an attack: a backtracking matcher takes seconds to years for each. */
const ENDLESS: [string, string][] = [
  ['https://*-*-*.vercel.app/**', `https://${'a-'.repeat(1000)}.vercel.apx/`],
  ['https://app.example.com/**/a/**/b/**/c', `https://app.example.com/${'a/b/'.repeat(490)}d`],
  ['https://app.example.com/**/a/**/b/**/c/**/d', `https://app.example.com/${'a/b/c/'.repeat(330)}e`],
  ['https://app.example.com/*-*-*-*-*-*-*-*/x', `https://app.example.com/${'-'.repeat(2000)}/`],
  ['https://app.example.com/**?**code=**&x', `https://app.example.com/${'?code='.repeat(330)}`],
  [`http://127.0.0.1:*/${'**a'.repeat(20)}b`, `http://127.0.0.1:1/${'a'.repeat(2000)}`],
]

withService('a target that would take a backtracking matcher years is refused like any other', async ({ service }) => {
  const strict = await service.with({ AUTH_URI_ALLOW_LIST: ENDLESS.map(([pattern]) => pattern).join(',') })
  for (const [, target] of ENDLESS) {
    const query = `/verify?type=signup&token=x&redirect_to=${encodeURIComponent(target)}`
    const answer = await strict.get(query, { redirect_to: target, referer: target })
    expect(String(answer.headers.location).split('#')[0]).toBe('https://site.example')
  }
  await strict.close()
})

test('a pattern that is too long is reported by its position, without being quoted', () => {
  const long = `https://{${Array.from({ length: 400 }, (_, index) => `a${index}`)}}.hunter2/**${'/a'.repeat(20)}`
  const problem = 'more than 20000 characters in all alternatives: pattern 2'
  expect(() => parseAllowList(`https://fine.example/**,${long}`)).toThrow(problem)
  expect(() => parseAllowList(`https://fine.example/**,${long}`)).not.toThrow(/hunter2/)
  expect(() => parseAllowList(`https://fine.example/**,http://127.0.0.1:1/${'a**'.repeat(10_000)}`)).toThrow(problem)
  const many = Array.from({ length: 1000 }, (_, index) => `https://*.tenant-${index}.example.com/**`).join(',')
  expect(parseAllowList(many)).toHaveLength(1000)
})

withService(
  'a link leads to a listed loopback address on any port, and never with a session of its own',
  async ({ service }) => {
    const native = await service.with({ AUTH_URI_ALLOW_LIST: 'http://127.0.0.1:8400/**' })
    const targetOf = async (redirectTo: string) => {
      const query = new URLSearchParams({ type: 'signup', token: 'x', redirect_to: redirectTo })
      return String((await native.get(`/verify?${query}`)).headers.location).split('#')[0]
    }
    expect(await targetOf('http://127.0.0.1:49152/cb?sb_flow_id=1')).toBe('http://127.0.0.1:49152/cb?sb_flow_id=1')
    expect(await targetOf('http://127.0.0.1:49152/cb#access_token=mine&x=1')).toBe('https://site.example')
    await native.close()
  },
)

withService.for<[string, Record<string, string>, string, string]>([
  ['nothing', {}, '', 'https://site.example'],
  ['the query', {}, 'https://site.example/query', 'https://site.example/query'],
  [
    'the header before the query',
    { redirect_to: 'https://site.example/header' },
    'https://site.example/query',
    'https://site.example/header',
  ],
  [
    'the query after a header that is not permitted',
    { redirect_to: 'https://evil.test' },
    'https://site.example/query',
    'https://site.example/query',
  ],
  [
    'the page it comes from',
    { referer: 'https://site.example/page' },
    'https://evil.test',
    'https://site.example/page',
  ],
  [
    'the site when nothing is permitted',
    { redirect_to: 'javascript:1', referer: 'https://evil.test' },
    '//evil.test',
    'https://site.example',
  ],
])('a request is redirected to %s', async ([, headers, query, target], { service }) => {
  const answer = await service.get(`/verify?type=signup&token=x&redirect_to=${encodeURIComponent(query)}`, headers)
  expect(answer.status).toBe(303)
  expect(String(answer.headers.location).split('#')[0]).toBe(target)
})
