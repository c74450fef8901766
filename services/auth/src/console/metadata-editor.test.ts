// The checks of the metadata editor, whose modules are for browsers and need none.
import { describe, expect, test } from 'vitest'

const open = (name: string) => import(new URL(`browser/${name}`, import.meta.url).href)
const { checkJson } = (await open('kit/json-editor.js')) as {
  checkJson: (text: string) => { value?: unknown; problem?: string }
}
const { changesOf } = (await open('screens/users/save-user.js')) as {
  changesOf: (before: object, after: object) => object
}

const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`

test.each(['__proto__', 'constructor', 'toString'])(
  'the name %s is data, added, changed and removed as any',
  (name) => {
    const given = checkJson(`{ "${name}": {}, "plan": "gold" }`).value as object
    expect(Object.keys(given)).toEqual([name, 'plan'])
    const added = changesOf({ plan: 'gold' }, given)
    expect(JSON.stringify(added)).toBe(`{"${name}":{}}`)
    expect(JSON.stringify(changesOf(given, { plan: 'gold' }))).toBe(`{"${name}":null}`)
    expect(changesOf(given, JSON.parse(`{ "plan": "gold", "${name}": {} }`))).toEqual({})
  },
)

describe('the editor refuses what would not be stored as it is typed', () => {
  test.each<readonly [string, string, string]>([
    ['a name twice', '{ "a": 1,\n  "b": { "c": [{}] }, "a": 2 }', 'The name "a" is there twice: line 2, column 23.'],
    ['a name twice in an inner object', '{"a":[{"b":1,"b":1}]}', 'The name "b" is there twice: line 1, column 14.'],
    ['a name twice, once escaped', '{"a":1,"\\u0061":2}', 'The name "a" is there twice: line 1, column 8.'],
    [
      'a name of JavaScript twice',
      '{"__proto__":1,"__proto__":2}',
      'The name "__proto__" is there twice: line 1, column 16.',
    ],
    ['more than 99 levels', nested(100), 'This has more than 99 levels: line 1, column 496.'],
    ['100,000 levels', nested(100_000), 'This has more than 99 levels: line 1, column 496.'],
    ...['12345678901234567890', '-9007199254740993', '0.12345678901234567891', '1e400', '1e-400'].map(
      (number) =>
        [number, `{"a":${number}}`, `The number ${number} cannot be kept exactly: write it in quotes.`] as const,
    ),
    ['a list', '[]', 'This must be an object, such as { "name": "Ada" }.'],
    ['half an object', '{ "a": ', 'This is not valid JSON'],
  ])('%s', (_what, text, problem) => {
    expect(checkJson(text)).toEqual({ problem: expect.stringContaining(problem) })
  })

  test('and nothing else', () => {
    const names = '{"a":{"a":{}},"b":["a","a",{"a":":"}],"c":"\\"a\\": 1, [{"}'
    const numbers = '{"n":[0,-0.0,1e3,1.50,9007199254740991,100000000000000000000,0.30000000000000004,5e-324]}'
    for (const text of [names, numbers, nested(99)]) expect(checkJson(text)).toEqual({ value: JSON.parse(text) })
  })
})
