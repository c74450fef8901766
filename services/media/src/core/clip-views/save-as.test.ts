import { expect, test } from 'vitest'
import { saveAs } from './save-as.ts'

test.each([
  ['A cat jumps', 'filename="A cat jumps.gif"'],
  ['a/b\\c:d*e?f"g<h>i|j', 'filename="a b c d e f g h i j.gif"'],
  ['../../etc/passwd', 'filename="etc passwd.gif"'],
  ['.htaccess', 'filename="htaccess.gif"'],
  ['Ends with dots. . .', 'filename="Ends with dots.gif"'],
  ['line\r\nSet-Cookie: x', 'filename="lineSet-Cookie x.gif"'],
  ['Café', `filename="Cafe.gif"; filename*=UTF-8''Caf%C3%A9.gif`],
  ["100 % (it's *)", `filename="100 (it's ).gif"; filename*=UTF-8''100%20%25%20%28it%27s%20%29.gif`],
  ['猫', `filename="aB3dE9xK.gif"; filename*=UTF-8''%E7%8C%AB.gif`],
  ['half \ud800', `filename="half.gif"; filename*=UTF-8''half%20%EF%BF%BD.gif`],
  ['photo\u202egpj.exe', 'filename="photogpj.exe.gif"'],
  ['👩‍💻', `filename="aB3dE9xK.gif"; filename*=UTF-8''%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB.gif`],
  ['con', 'filename="aB3dE9xK.gif"'],
  ['LPT1.final cut', 'filename="aB3dE9xK.gif"'],
  ['Concert', 'filename="Concert.gif"'],
  ['???', 'filename="aB3dE9xK.gif"'],
  ['x'.repeat(200), `filename="${'x'.repeat(60)}.gif"`],
])('a clip with the title %j is saved with %s', (title, expected) => {
  expect(saveAs(title, { id: 'aB3dE9xK', ending: 'gif' })).toBe(`attachment; ${expected}`)
})
