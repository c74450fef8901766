import { expect, test } from 'vitest'
import { isPermitted, parseAllowList } from './redirect-target.ts'

const rules = (allowList: string) => ({ siteUrl: 'https://site.example', allowList: parseAllowList(allowList) })

test.for<[string, boolean]>([
  ['https://site.example', true],
  ['https://site.example/deep/page?x=1#part', true],
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
])('list %j: %j is permitted: %s', ([pattern, url, expected]) => {
  expect(isPermitted(url, rules(pattern))).toBe(expected)
})
