import { expect, test } from 'vitest'
import { htmlToText } from './html-to-text.ts'

test.each([
  ['links keep their address', '<a href="https://a/?b=1&amp;c=2">Go &amp; see</a>', 'Go & see (https://a/?b=1&c=2)'],
  ['a link that shows its address', '<a href="https://a/">https://a/</a>', 'https://a/'],
  ['a mail link', '<a href="mailto:a@b.c">a@b.c</a>', 'a@b.c'],
  ['an image that is a link', '<a href="https://a/"><img src="x" alt="Logo"></a>', 'Logo (https://a/)'],
  ['an empty link', '<a href="https://a/"></a>', 'https://a/'],
  ['a link within the page', '<a href="#top">Top</a>', 'Top'],
  ['a link that is never closed', '<a href="https://a/">Go', 'Go (https://a/)'],
  ['blocks', '<h1>A</h1><p>b<br>c</p><div>d</div>', 'A\n\nb\nc\n\nd'],
  ['lists and cells', '<ul><li>a</li><li>b</li></ul><table><tr><td>c</td><td>d</td></tr></table>', '- a\n- b\n\nc d'],
  ['blanks', '<p>  a \n\n  b  </p>', 'a b'],
  [
    'what is not shown',
    '<head><title>t</title></head><style>s{}</style><script>if (a<b) {}</script><!-- c > d -->a',
    'a',
  ],
  ['entities', '&lt;b&gt; &quot;&#228;&#xe4;&euro;&nbsp;&unknown; &#0;&#1114112;', '<b> "ää€ &unknown; \ufffd\ufffd'],
  ['what every object has is no entity', '&toString; &valueOf;', '&toString; &valueOf;'],
  ['a quoted >', '<p title="a>b">c</p>', 'c'],
  ['less-than', '1 < 2', '1 < 2'],
])('%s', (_what, html, text) => {
  expect(htmlToText(html)).toBe(`${text}\n`)
})

test('a hostile megabyte takes no time to speak of', () => {
  for (const part of ['<', '<a', '<!--', '<a href="', '&#', '<p "']) {
    expect(htmlToText(part.repeat(200_000)).length).toBeLessThan(2_000_000)
  }
})
