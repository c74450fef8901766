import { expect, test } from 'vitest'
import { type HtmlValue, html, jsonLd, raw, toText } from './html.ts'

const HOSTILE = `</script></style></title></textarea>--><img src=x onerror=alert(1)>"'><svg/onload=alert(2)>&lt;{{7*7}}\u2028`

test.each<[HtmlValue, string]>([
  ['<b>', '&lt;b&gt;'],
  [`"'&`, '&quot;&#39;&amp;'],
  ['&amp;', '&amp;amp;'],
  [0, '0'],
  [1.5, '1.5'],
  [undefined, ''],
  [null, ''],
  [false, ''],
  ['', ''],
  [raw('<b>'), '<b>'],
  [html`<i>${'<'}</i>`, '<i>&lt;</i>'],
  [['<', html`<br>`, [1, undefined]], '&lt;<br>1'],
])('%o becomes %s', (value, expected) => {
  expect(toText(html`[${value}]`)).toBe(`[${expected}]`)
})

test('JSON that imitates markup is escaped', () => {
  const forged = JSON.parse('{"MARKUP":"<script>","toString":"<script>"}')
  expect(() => html`${forged}`).toThrow(TypeError)
})

test('no value closes a JSON data block, and the block parses back to the same', () => {
  const text = toText(jsonLd({ name: HOSTILE }))
  expect(text.match(/<\/script/g)).toHaveLength(1)
  expect(text).not.toMatch(/<!--|\u2028/)
  const json = text.replace(/^<script type="application\/ld\+json">/, '').replace(/<\/script>$/, '')
  expect(JSON.parse(json)).toEqual({ name: HOSTILE })
})
